"""Policies: networks against plain loops, spaces, descriptions, files."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from own_tasks import Recurrent
from sentences import GIVE_POLICY

import recoup
from recoup.checks import InputError
from recoup.tasks.policies.described import described, restored, space_described, space_restored
from recoup.tasks.policies.environment_spaces import inputs_of, outputs_of
from recoup.tasks.policies.networks import MLP, Kernels, Linear, fitted, grid
from recoup.tasks.policies.policy import (
    SpacePolicy,
    beginner,
    make_policy,
    scale_of,
    start_of,
    words_of,
)

RNG = np.random.default_rng(3)
CENTRES = ((0.0, 1.0), (2.0, -1.0), (0.5, 0.5))
NETWORKS = {
    "linear": Linear(2, 3),
    "bare": Linear(2, 3, bias=False),
    "kernels": Kernels(CENTRES, (0.7, 1.9), 3),
    "mlp": MLP(2, (4, 5), 3),
}


def loop_dense(weights, bias, x):
    return [
        sum(x[i] * weights[i][j] for i in range(len(x))) + bias[j] for j in range(len(weights[0]))
    ]


def loop(name, theta, x):
    """The same as written out, weight by weight."""
    numbers = iter(theta.tolist())

    def block(rows, columns):
        return [[next(numbers) for _ in range(columns)] for _ in range(rows)]

    if name == "linear":
        weights = block(3, 3)
        return loop_dense(weights[:2], weights[2], x)
    if name == "bare":
        return loop_dense(block(2, 3), [0, 0, 0], x)
    if name == "kernels":
        near = [
            np.exp(-((x[0] - c[0]) ** 2) / (2 * 0.7**2) - (x[1] - c[1]) ** 2 / (2 * 1.9**2))
            for c in CENTRES
        ]
        weights = block(4, 3)
        return loop_dense(weights[:3], weights[3], near)
    for rows, columns in ((3, 4), (5, 5)):
        weights = block(rows, columns)
        x = np.tanh(loop_dense(weights[:-1], weights[-1], x))
    weights = block(6, 3)
    return loop_dense(weights[:-1], weights[-1], x)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_what_a_plain_loop_computes(name, x64):
    network, x = NETWORKS[name], np.array([0.3, -1.2])
    theta = RNG.normal(size=network.parameters)
    want = loop(name, theta, x)
    np.testing.assert_allclose(network.bound(theta)(x), want, rtol=1e-12)
    np.testing.assert_allclose(network.bound(jnp.asarray(theta))(x), want, rtol=1e-12)
    assert network.spread().shape == (network.parameters,)


def test_spreads_make_outputs_of_the_order_of_one():
    for network in (Linear(40, 2), MLP(40, (30, 20), 2)):
        rng = np.random.default_rng(0)
        outputs = [
            network.bound(network.spread() * rng.normal(size=network.parameters))(
                rng.normal(size=40)
            )
            for _ in range(400)
        ]
        assert 0.4 < np.std(outputs) < 1.3


def test_a_grid_has_its_points_between_the_bounds():
    centres, widths = grid([0, -1], [1, 3], 3)
    assert centres.shape == (9, 2)
    assert sorted({tuple(c) for c in centres})[1] == (0, 1)
    np.testing.assert_allclose(widths, [0.5, 2.0])
    with pytest.raises(InputError, match="need bounds of every observation"):
        grid([0, -np.inf], [1, np.inf], 3)
    with pytest.raises(InputError, match="has 1,000,000 kernels"):
        grid([0] * 6, [1] * 6, 10)


def test_fitted_centres_are_observations_far_apart():
    observed = np.concatenate([RNG.normal(size=(200, 2)), [[50.0, 0.0]], [[0.0, -80.0]]])
    centres, widths = fitted(observed, 5)
    assert centres.shape == (5, 2)
    seen = {tuple(np.round(row, 9)) for row in observed}
    assert all(tuple(np.round(c, 9)) in seen for c in centres)
    assert [50.0, 0.0] in centres.round(6).tolist()
    assert [0.0, -80.0] in centres.round(6).tolist()
    assert (widths > 0).all()
    assert len(fitted(np.zeros((4, 2)), 3)[0]) == 1  # no more than there are


def _box(low, high):
    return spaces.Box(np.array(low, np.float32), np.array(high, np.float32))


@pytest.mark.parametrize(
    ("space", "outputs", "numbers", "want"),
    [
        (_box([-2, 0], [2, 1]), 2, [0.5, 0.0], [1.0, 0.5]),
        (_box([-2, 0], [2, 1]), 2, [9.0, -9.0], [2.0, 0.0]),
        (spaces.Box(-np.inf, np.inf, (1,)), 1, [7.5], [7.5]),
        (_box([0], [np.inf]), 1, [-3.0], [0.0]),
        (spaces.Box(0, 10, (1,), np.int64), 1, [0.3], [6]),
        (spaces.Discrete(2), 1, [0.1], 1),
        (spaces.Discrete(2), 1, [-0.1], 0),
        (spaces.Discrete(3, start=5), 3, [0.0, 2.0, 1.0], 6),
        (spaces.MultiDiscrete([2, 3]), 5, [1, 0, 0, 0, 4], [0, 2]),
        (spaces.MultiBinary(3), 3, [1, -1, 0.5], [1, 0, 1]),
    ],
)
def test_numbers_become_actions(space, outputs, numbers, want):
    made = outputs_of(space, "clip")
    assert made.size == outputs
    action = made.act(np.array(numbers, float))
    np.testing.assert_allclose(action, want)
    assert space.contains(action)


def test_squashing_is_smooth_and_keeps_to_the_bounds():
    space = spaces.Box(np.array([-2.0, 1.0]), np.array([2.0, 5.0]), dtype=np.float64)
    act = outputs_of(space, "squash").act
    np.testing.assert_allclose(act(np.array([0.4, -0.2])), [2 * np.tanh(0.4), 3 - 2 * np.tanh(0.2)])
    assert space.contains(act(np.array([30.0, -30.0])))


def test_observations_are_flattened_as_gymnasium_does():
    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Tuple([spaces.Box(-1, 1, (2,))])})
    seen = {"a": 2, "b": (np.array([0.5, -0.5], np.float32),)}
    inputs = inputs_of(space)
    assert inputs.size == 5
    np.testing.assert_array_equal(inputs.flatten(seen), spaces.utils.flatten(space, seen))


def test_spaces_that_are_not_supported_are_said():
    space = spaces.Sequence(spaces.Discrete(2))
    with pytest.raises(InputError, match="cannot be made a vector of numbers"):
        inputs_of(space)
    with pytest.raises(InputError, match="are not supported"):
        outputs_of(space, "clip")


BOX, PUSH = spaces.Box(-1, 3, (2,)), spaces.Box(-2, 2, (1,))


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("linaer", {}, "Did you mean 'linear'"),
        ("mlp", {"hiden": 3}, "Did you mean 'hidden'"),
        ("mlp", {"hidden": 0}, "hidden must be a whole number"),
        ("linear", {"bias": 1}, "bias must be True or False"),
        ("linear", {"actions": "squish"}, "actions must be one of clip, squash"),
        (object(), {}, "a policy is a word"),
        (Recurrent(), {"size": 3}, "has no options"),
    ],
)
def test_policies_that_there_are_not_get_one_sentence(given, options, message):
    with pytest.raises(InputError, match=message):
        make_policy(given, options, BOX, PUSH, None, False)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("linear", {"bias": False}),
        ("mlp", {"hidden": [3, 2], "actions": "squash"}),
        ("kernels", {"size": 3}),
    ],
)
def test_a_policy_is_described_in_json_and_comes_back(kind, options, tmp_path):
    observed = RNG.normal(size=(50, 2)) * [1, 9] + [4, 0]
    policy = make_policy(kind, options, BOX, PUSH, observed, True)
    again = restored(json.loads(json.dumps(described(policy))))
    assert again == policy
    theta = RNG.normal(size=policy.parameters)
    seen = np.array([0.4, 2.0])
    np.testing.assert_array_equal(again.bound(theta)(seen), policy.bound(theta)(seen))
    from recoup.tasks.policies.policy_files import save_policy

    loaded = recoup.load_policy(save_policy(tmp_path / "p.npz", policy, theta))
    np.testing.assert_array_equal(loaded(seen), policy.bound(theta)(seen))
    assert str(policy.parameters) in repr(loaded)


@pytest.mark.parametrize(
    "space",
    [
        BOX,
        spaces.Box(np.array([-np.inf, 0], np.float32), np.array([1, np.inf], np.float32)),
        spaces.Discrete(4, start=-1),
        spaces.MultiDiscrete([2, 5]),
        spaces.MultiBinary([2, 3]),
        spaces.Dict({"a": spaces.Tuple([spaces.Discrete(2), BOX])}),
    ],
)
def test_spaces_are_described_in_json_and_come_back(space):
    again = space_restored(json.loads(json.dumps(space_described(space))))
    assert again == space
    assert inputs_of(again).size == inputs_of(space).size


def test_normalised_observations_have_mean_zero_and_deviation_one():
    observed = RNG.normal(size=(4000, 2)) * [100, 0.1] + [500, -3]
    scale = scale_of(observed)
    policy = SpacePolicy(
        Linear(2, 1, bias=False), BOX, spaces.Box(-np.inf, np.inf, (1,)), "clip", scale
    )
    for theta in ([1.0, 0.0], [0.0, 1.0]):
        outputs = np.array([policy.bound(theta)(row)[0] for row in observed])
        assert abs(outputs.mean()) < 1e-6
        assert abs(outputs.std() - 1) < 0.01
    far = policy.bound([1.0, 0.0])(np.array([1e9, 0.0]))
    assert far == 10  # no observation counts as farther
    constant = scale_of(np.full((5, 2), 7.0))
    assert constant.std == (1.0, 1.0)


def test_a_policy_with_a_memory_carries_it_through_an_episode_and_no_further():
    begin = beginner(Recurrent(), [0.1, 0.5, 0.0])
    first, second = begin(), begin()
    seen = [np.array([1.0]), np.array([-0.4])]
    np.testing.assert_allclose(first(seen[0]), [0.1], rtol=1e-6)
    np.testing.assert_allclose(first(seen[1]), [-0.04 + 0.5], rtol=1e-6)
    np.testing.assert_allclose(second(seen[1]), [-0.04], rtol=1e-6)
    assert start_of(Recurrent()) == 1.0
    assert words_of(Recurrent()) == "Recurrent, 3 parameters"


class TestFiles:
    def test_only_plain_arrays_are_read(self, tmp_path):
        bad = tmp_path / "bad.npz"
        np.savez(bad, theta=np.array([object()], dtype=object), policy=np.array("{}"))
        with pytest.raises(InputError, match="cannot be read as a policy"):
            recoup.load_policy(bad)

    @pytest.mark.parametrize("content", [b"", b"nothing", b"PK\x03\x04garbage"])
    def test_other_files_get_one_sentence(self, content, tmp_path):
        (tmp_path / "x.npz").write_bytes(content)
        with pytest.raises(InputError, match="cannot be read as a policy"):
            recoup.load_policy(tmp_path / "x.npz")

    def test_a_policy_of_ones_own_is_needed_again(self, tmp_path):
        from recoup.tasks.policies.policy_files import save_policy

        path = save_policy(tmp_path / "r.npz", Recurrent(), np.arange(3.0))
        with pytest.raises(InputError, match=GIVE_POLICY):
            recoup.load_policy(path)
        policy = recoup.load_policy(path, Recurrent())
        assert policy(np.array([0.0])) == 1.0
        policy(np.array([0.2]))
        assert policy.begin()(np.array([-1.0])) == 1.0

    def test_another_number_of_parameters_is_refused(self, tmp_path):
        from recoup.tasks.policies.policy_files import save_policy

        policy = make_policy("linear", {}, BOX, PUSH, None, False)
        with pytest.raises(InputError, match=r"must hold 3 finite numbers .* shape \[5\]"):
            recoup.load_policy(save_policy(tmp_path / "p.npz", policy, np.zeros(5)))


def test_networks_are_traced_by_jax(x64):
    network = NETWORKS["mlp"]
    thetas = RNG.normal(size=(3, network.parameters))
    x = np.array([0.3, -1.2])
    together = jax.jit(jax.vmap(lambda theta: network.bound(theta)(x)))(thetas)
    for row, theta in zip(together, thetas, strict=True):
        np.testing.assert_allclose(row, network.bound(theta)(x), rtol=1e-12)


class Gives:
    """A network or policy that gives a fixed shape."""

    parameters = 3

    def __init__(self, *shape):
        self.shape = shape

    def spread(self):
        return np.ones(3)


class Network(Gives):
    def bound(self, theta):
        return lambda x: (np.ones((2, 1)).T @ x) * np.ones(self.shape)


class Acts(Gives):
    def act(self, theta, observation):
        return np.zeros(self.shape)


BOX, TWO = spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (3,))


@pytest.mark.parametrize(
    ("policy", "observations", "words"),
    [
        (Network(2), BOX, r"gives the shape \[2\], but actions of this task take \[3\]"),
        (Network(3, 1), BOX, r"gives the shape \[3, 1\], but actions"),
        (Network(3), TWO, "cannot take an observation of this task, 3 numbers: ValueError"),
        (Acts(2), BOX, r"`act` of the policy gives the shape \[2\], but actions .* have \[3\]"),
        (Acts(), BOX, r"`act` of the policy gives the shape \[\]"),
    ],
)
def test_a_network_or_policy_that_does_not_fit_its_spaces_is_refused(policy, observations, words):
    with pytest.raises(InputError, match=words):
        make_policy(policy, {}, observations, TWO, None, False)


def test_one_that_fits_is_not():
    assert make_policy(Network(3), {}, BOX, TWO, None, False).parameters == 3
    assert make_policy(Acts(3), {}, BOX, TWO, None, False).parameters == 3
    assert make_policy(Acts(), {}, BOX, spaces.Box(-1, 1, (1,)), None, False).parameters == 3
    assert make_policy(Acts(), {}, BOX, spaces.Discrete(4), None, False).parameters == 3


def test_train_refuses_it_before_anything_is_rolled_out(tmp_path):
    with pytest.raises(InputError, match="the network gives the shape"):
        recoup.train("MountainCarContinuous-v0", policy=Network(2), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
