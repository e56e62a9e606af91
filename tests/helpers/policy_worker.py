"""Loads policies in a process of its own: a line names a file, and one with actions is written.

A line is JSON: `policy`, its file; `seen`, a pickle of observations; `actions`, where the pickle of
its actions belongs; `module`, what `made` takes, where only Python can give the policy.
"""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np


def made(kind, inputs, outputs):
    """A module of a library with one hidden layer, the same in every process."""
    if kind == "linen":
        from flax import linen

        return linen.Sequential([linen.Dense(3), linen.tanh, linen.Dense(outputs)])
    if kind == "nnx":
        from flax import nnx

        rngs = nnx.Rngs(0)
        return nnx.Sequential(nnx.Linear(inputs, 3, rngs=rngs), nnx.Linear(3, outputs, rngs=rngs))
    if kind == "equinox":
        import equinox
        import jax

        return equinox.nn.MLP(inputs, outputs, 3, 1, key=jax.random.key(0))
    import torch

    torch.manual_seed(0)
    layers = torch.nn.Linear(inputs, 3), torch.nn.Tanh(), torch.nn.Linear(3, outputs)
    return torch.nn.Sequential(*layers)


class Worker:
    """A process that loads policies as long as it is asked to."""

    def __init__(self, place):
        self._place, self._count = Path(place), 0
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([sys.executable, __file__], **pipes)

    def actions(self, policy, seen, module=None):
        """What the policy in a file does, seeing what was seen."""
        self._count += 1
        paths = [self._place / f"{name}-{self._count}" for name in ("seen", "actions")]
        paths[0].write_bytes(pickle.dumps(seen))
        names = dict(zip(("policy", "seen", "actions"), map(str, [policy, *paths]), strict=True))
        print(json.dumps({**names, "module": module}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer == "done", answer
        return pickle.loads(paths[1].read_bytes())

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)


def main():
    import recoup

    for line in sys.stdin:
        asked = json.loads(line)
        try:
            given = None if asked["module"] is None else made(*asked["module"])
            policy = recoup.load_policy(asked["policy"], given)
            seen = pickle.loads(Path(asked["seen"]).read_bytes())
            actions = [np.asarray(policy(one)) for one in seen]
            Path(asked["actions"]).write_bytes(pickle.dumps(actions))
            print("done", flush=True)
        except Exception as wrong:
            print(f"{type(wrong).__name__}: {wrong}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
