"""Real processes that start in a moment: forked from a server that has imported what they need.

JAX is imported there and not started: what it starts does not survive a fork.
"""

import multiprocessing
import os
import signal
import sys

from waiting import LIMIT

PRELOAD = ["recoup.study.study", "recoup.study.moves.compiled", "recoup.core.pareto", "optax"]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(PRELOAD)


class Forked:
    """A process that calls a function, with the verbs of `subprocess.Popen`."""

    def __init__(self, errors, target, *args):
        self.errors = errors  # the file that its stderr goes to
        self.process = CONTEXT.Process(target=_called, args=(str(errors), target, args))
        self.process.start()
        self.pid = self.process.pid

    def poll(self):
        return self.process.exitcode

    def wait(self):
        self.process.join(LIMIT)
        return self.process.exitcode

    def kill(self):
        """SIGKILL, and nothing of it is left to run."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.wait() is not None

    def said(self):
        return self.errors.read_text()


def _called(errors, target, args):
    with open(errors, "w") as file:
        os.dup2(file.fileno(), 2)
    started = sys.modules["jax._src.xla_bridge"].backends_are_initialized()
    assert not started, "JAX was started before the fork"
    target(*args)
