"""Everything that is saved comes back as it was: spaces, policies, in another process too."""

import json
import pickle

import numpy as np
import policy_worker
import pytest
from any_spaces import ANY, OBSERVED, boxes, choices
from gymnasium import spaces
from hypothesis import example, given
from hypothesis import strategies as st
from own_tasks import Glider, Steers

import recoup
from recoup.tasks.policies.described import described, restored, space_described, space_restored
from recoup.tasks.policies.environment_spaces import inputs_of, outputs_of
from recoup.tasks.policies.fingerprint import fixed_observations
from recoup.tasks.policies.policy import make_policy
from recoup.tasks.policies.policy_files import save_policy

ACTED = choices() | boxes((np.float32, np.float64, np.int32))
KINDS = [
    ("linear", {}),
    ("linear", {"bias": False}),
    ("mlp", {"hidden": 3}),
    ("mlp", {"hidden": [2, 3]}),
    ("kernels", {"size": 4}),
]


@st.composite
def policies(draw):
    """A policy of ours between any spaces, and its parameters."""
    observations, actions = draw(OBSERVED), draw(ACTED)
    kind, options = draw(st.sampled_from(KINDS))
    options = {**options, "actions": draw(st.sampled_from(["clip", "squash"]))}
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    observed = rng.normal(size=(9, inputs_of(observations).size)) * 3 + 1
    fitted = kind == "kernels" or draw(st.booleans())
    normalize = fitted and draw(st.booleans())
    policy = make_policy(
        kind, options, observations, actions, observed if fitted else None, normalize
    )
    return policy, rng.normal(size=policy.parameters)


def seen_in(space):
    """Observations of a space: some that are drawn, some that are fixed."""
    space.seed(0)
    return [*(space.sample() for _ in range(2)), *fixed_observations(space)]


UNSORTED = spaces.Dict(
    pos=spaces.Box(-1, 1, (2,)),
    vel=spaces.Tuple([spaces.Dict(z=spaces.Discrete(3, start=2), a=spaces.MultiBinary([2, 2]))]),
    att=spaces.Box(0, 255, (4, 3, 3), np.uint8),
)


@given(OBSERVED)
@example(UNSORTED)
@example(spaces.Dict([("two words", spaces.Discrete(2)), ("", spaces.Discrete(2)), (3, UNSORTED)]))
@ANY
def test_a_space_comes_back_with_its_order(space):
    again = space_restored(json.loads(json.dumps(space_described(space))))
    assert again == space
    assert repr(again) == repr(space)  # orders of keys too, which == does not see
    inputs = inputs_of(space), inputs_of(again)
    np.testing.assert_array_equal(inputs[0].low, inputs[1].low)
    for seen in seen_in(space):
        np.testing.assert_array_equal(inputs[0].flatten(seen), inputs[1].flatten(seen))


@given(OBSERVED)
@example(UNSORTED)
@ANY
def test_workers_are_sent_a_space_with_its_order(space):
    assert repr(pickle.loads(pickle.dumps(space))) == repr(space)


@given(policies())
@ANY
def test_a_policy_comes_back_to_the_bit(made):
    policy, theta = made
    again = restored(json.loads(json.dumps(described(policy))))
    acts = policy.bound(theta), again.bound(theta)
    for seen in seen_in(policy.observations):
        np.testing.assert_array_equal(acts[0](seen), acts[1](seen))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A process that loads policies, and a directory for them."""
    place = tmp_path_factory.mktemp("elsewhere")
    worker = policy_worker.Worker(place)
    yield worker, place
    worker.close()


@given(made=policies())
@ANY
def test_in_another_process_it_is_the_same_policy(elsewhere, made):
    worker, place = elsewhere
    policy, theta = made
    path, seen = save_policy(place / "policy.npz", policy, theta), seen_in(policy.observations)
    act = policy.bound(theta)
    for found, one in zip(worker.actions(path, seen), seen, strict=True):
        np.testing.assert_array_equal(found, act(one))


@pytest.mark.parametrize("kind", ["linen", "nnx", "equinox", "torch"])
def test_a_module_between_unsorted_spaces_is_the_same_in_another_process(kind, elsewhere):
    pytest.importorskip({"linen": "flax", "nnx": "flax"}.get(kind, kind))
    worker, place = elsewhere
    actions = spaces.Box(-1, 1, (2,))
    sizes = inputs_of(UNSORTED).size, outputs_of(actions, "clip").size
    policy = make_policy(policy_worker.made(kind, *sizes), {}, UNSORTED, actions, None, False)
    theta = np.random.default_rng(0).normal(size=policy.parameters) / 30
    path, seen = save_policy(place / f"{kind}.npz", policy, theta), seen_in(UNSORTED)
    act = policy.bound(theta)
    for found, one in zip(worker.actions(path, seen, [kind, *sizes]), seen, strict=True):
        np.testing.assert_allclose(found, act(one), rtol=1e-5, atol=1e-6)


def test_a_policy_of_ones_own_is_saved_with_its_spaces(tmp_path):
    env, theta = Glider(), np.arange(5.0) / 5
    spaces_of = env.observation_space, env.action_space
    path = save_policy(tmp_path / "p.npz", Steers(), theta, spaces_of)
    loaded = recoup.load_policy(path, Steers(), task=Glider)
    seen = env.reset(seed=1)[0]
    np.testing.assert_array_equal(loaded(seen), Steers().act(theta, seen))
    again = recoup.load_policy(loaded.save(tmp_path / "again.npz"), Steers(), task=Glider)
    np.testing.assert_array_equal(again(seen), loaded(seen))
