"""The page about policy files: its lines run any of them, without us, and act as we do."""

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from policy_cases import ACTIONS, BOX, OBSERVATIONS, cases_of, seen_in

from recoup.tasks.policies.adapters import adapted
from recoup.tasks.policies.policy import SpacePolicy, make_policy
from recoup.tasks.policies.policy_files import SavedPolicy, save_policy

PAGE = (Path(__file__).parents[2] / "docs" / "policy-file.md").read_text()
BLOCKS = re.findall(r"```python\n# (\w+\.py)[^\n]*\n(.*?)```", PAGE, re.S)
CODE = "".join(text for name, text in BLOCKS if name == "run_policy.py")
FILL = "".join(text for name, text in BLOCKS if name == "fill.py")
ALONE = """
import pickle, sys
for name in ("recoup", "jax", "gymnasium", "flax", "equinox", "torch"):
    sys.modules[name] = None  # importing it is an ImportError
def network(x):
    return 0.5 * x[:3] - 1
{code}
cases = pickle.load(open("cases.pickle", "rb"))
for path, own, seen in cases:
    act = load(path, network if own else None)
    with open(path + ".actions", "wb") as file:
        pickle.dump([act(one) for one in seen], file)
"""


def saved(directory):
    """Policies of every kind, space and setting, with observations and what they do there."""
    for name, policy, theta, drawn in cases_of(0):
        path = save_policy(directory / f"{name}.npz", policy, theta)
        yield str(path), drawn, [SavedPolicy(policy, theta)(one) for one in drawn]


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)


def test_the_lines_of_the_page_act_as_we_do_where_we_are_not_installed(tmp_path):
    cases = list(saved(tmp_path))
    assert len(cases) == len(OBSERVATIONS) * len(ACTIONS)
    with (tmp_path / "cases.pickle").open("wb") as file:
        pickle.dump([(path, False, drawn) for path, drawn, _ in cases], file)
    program = [sys.executable, "-W", "error", "-c", ALONE.replace("{code}", CODE)]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kinds = set()
    for path, _, want in cases:
        with np.load(path) as file:
            plain = json.loads(str(file["policy"]))["policy"]
        kinds.add((plain["kind"], plain["bounds"], plain["scale"] is None))
        got = pickle.loads(Path(f"{path}.actions").read_bytes())
        for one, other in zip(got, want, strict=True):
            same(one, other)
    assert len(kinds) == 12  # every kind with and without each


def test_a_network_of_ones_own_is_given_to_the_lines(tmp_path):
    class Own:
        parameters = 1

        def bound(self, theta):
            return lambda x: 0.5 * x[:3] - 1

    rng, space = np.random.default_rng(1), OBSERVATIONS["dict"]
    policy = SpacePolicy(Own(), space, ACTIONS["box"], "squash")
    path, drawn = save_policy(tmp_path / "p.npz", policy, np.ones(1)), seen_in(space, rng, 5)
    with (tmp_path / "cases.pickle").open("wb") as file:
        pickle.dump([(str(path), True, drawn)], file)
    program = [sys.executable, "-W", "error", "-c", ALONE.replace("{code}", CODE)]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    act = SavedPolicy(policy, np.ones(1))
    for one, other in zip(drawn, pickle.loads(Path(f"{path}.actions").read_bytes()), strict=True):
        same(other, act(one))


def test_the_policy_itself_takes_about_twenty_lines():
    first = next(text for name, text in BLOCKS if name == "run_policy.py")
    lines = [line for line in first.splitlines() if line.strip()]
    assert len([line for line in lines if "import" not in line]) <= 22


@pytest.mark.parametrize("kind", ["torch", "linen", "nnx", "equinox"])
def test_the_lines_of_the_page_fill_a_module(kind, tmp_path):
    from foreign_networks import made
    from test_adapters import called

    module = made(kind, outputs=1)
    acts = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    policy = SpacePolicy(adapted(module, 3), spaces.Box(-1, 1, (3,)), acts)
    theta = np.random.default_rng(2).normal(size=policy.parameters)
    path, x = save_policy(tmp_path / "p.npz", policy, theta), np.array([0.3, -1.2, 0.7])
    names: dict = {}
    exec(FILL, names)
    given = (path,) if kind == "linen" else (module, path)
    filled = names[f"fill_{kind}"](*given)
    want = SavedPolicy(policy, theta)(x)
    np.testing.assert_allclose(called(kind, module, filled, x), want, rtol=1e-5)


def test_every_array_and_field_is_on_the_page(tmp_path):
    from foreign_networks import made

    networks = [made("equinox", inputs=2, outputs=3), "linear", "kernels", "mlp"]
    for given in networks:
        rng = np.random.default_rng(3)
        policy = make_policy(given, {}, BOX, ACTIONS["box"], rng.normal(size=(9, 2)), True)
        path = save_policy(tmp_path / "p.npz", policy, np.zeros(policy.parameters))
        with np.load(path) as file:
            plain = json.loads(str(file["policy"]))
            names = {re.sub(r"(weights/|fingerprint_).*", r"\1", name) for name in file}
        fields = {*plain, *plain["policy"], *plain["policy"].get("network", ())}
        fields |= {*plain["policy"]["scale"]}
        for name in fields | names:
            assert re.search(rf"[`\"{{]{re.escape(name)}", PAGE), name


def test_arrays_of_a_module_are_as_precise_as_it_is(tmp_path):
    eqx = pytest.importorskip("equinox")
    module = eqx.nn.Linear(2, 3, key=jax.random.key(0), dtype=jnp.bfloat16)
    policy = SpacePolicy(adapted(module, 2), BOX, ACTIONS["box"])
    path = save_policy(tmp_path / "p.npz", policy, np.full(9, 0.1))
    with np.load(path, allow_pickle=False) as file:
        assert file["weights/weight"].dtype == float  # what NumPy has no name for, as numbers
        np.testing.assert_array_equal(file["weights/bias"], float(jnp.bfloat16(0.1)))
