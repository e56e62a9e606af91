"""What is stored beside the environment of now: spaces in words, fingerprints of policies."""

import json

import gymnasium
import numpy as np
import pytest
from any_spaces import ANY, OBSERVED
from gymnasium import spaces
from hypothesis import given
from own_tasks import Glider, Recurrent, sorted_glider

import recoup
from recoup.checks import InputError
from recoup.tasks.policies.compared import check_spaces, difference
from recoup.tasks.policies.described import space_described
from recoup.tasks.policies.environment_spaces import inputs_of
from recoup.tasks.policies.fingerprint import (
    OTHERS_ERROR,
    OWN_ERROR,
    check_fingerprint,
    count_for,
    fingerprint,
    fixed_observations,
    fixed_thetas,
    flattened,
    is_same,
    thetas_beside,
)
from recoup.tasks.policies.policy import make_policy
from recoup.tasks.policies.policy_files import save_policy

BOX = spaces.Box(-1, 1, (3,))


class Chooses:
    """A policy of the user's whose actions are 0 and 1."""

    parameters = 4

    def __init__(self, change=np.asarray):
        self.change = change

    def act(self, theta, observation):
        return int(np.dot(theta, self.change(observation)) > 0)


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (BOX, spaces.Box(-1, 1, (2,)), r"the shape was \[3\] and is \[2\] now"),
        (BOX, spaces.Box(-1, 1, (3, 1)), r"the shape was \[3\] and is \[3, 1\] now"),
        (BOX, spaces.Box(-1, 1, (3,), np.float64), "the dtype was float32 and is float64 now"),
        (BOX, spaces.Box(-1, 2, (3,)), "the high bound 0 was 1 and is 2 now"),
        (BOX, spaces.Box(-np.inf, 1, (3,)), "the low bound 0 was -1 and is -inf now"),
        (BOX, spaces.Discrete(3), "the kind was Box and is Discrete now"),
        (BOX, spaces.Text(3), "the kind was Box and is Text now"),
        (spaces.Discrete(3), spaces.Discrete(4), "the number of choices was 3 and is 4 now"),
        (spaces.Discrete(3), spaces.Discrete(3, start=1), "the start was 0 and is 1 now"),
        (spaces.MultiBinary(3), spaces.MultiBinary((3, 1)), r"the shape was \[3\] and is \[3, 1\]"),
        (
            spaces.MultiDiscrete([2, 3]),
            spaces.MultiDiscrete([2, 3], start=[0, 4]),
            "the start 1 was 0 and is 4 now",
        ),
        (spaces.Tuple([BOX]), spaces.Tuple([BOX, BOX]), "the number of parts was 1 and is 2 now"),
        (spaces.Dict(a=BOX), spaces.Dict(a=BOX, b=BOX), "the keys were 'a' and are 'a', 'b' now"),
        (spaces.Dict(b=BOX, a=BOX), spaces.Dict(a=BOX, b=BOX), "was 'b', 'a' and is 'a', 'b' now"),
        (
            spaces.Dict(b=spaces.Tuple([BOX, spaces.Dict(x=BOX)])),
            spaces.Dict(b=spaces.Tuple([BOX, spaces.Dict(x=spaces.Discrete(2))])),
            r"the kind of \['b'\]\[1\]\['x'\] was Box and is Discrete now",
        ),
    ],
)
def test_what_differs_is_named(was, now, words):
    with pytest.raises(InputError, match=f"the observations of env are not .*: .*{words}"):
        check_spaces("env", {"observations": space_described(was)}, (now, BOX))
    with pytest.raises(InputError, match=f"the actions of env are not .*: .*{words}"):
        check_spaces("env", {"actions": space_described(was)}, (BOX, now))


@given(OBSERVED)
@ANY
def test_a_space_does_not_differ_from_itself(space):
    stored = json.loads(json.dumps(space_described(space)))
    assert difference(stored, space_described(space)) is None


def test_bounds_that_are_rounded_otherwise_do_not_differ():
    near = spaces.Box(-1, np.nextafter(np.float32(1), np.float32(2)), (3,))
    check_spaces("env", {"observations": space_described(BOX)}, (near, BOX))


class TestFixedObservations:
    @given(OBSERVED)
    @ANY
    def test_they_lie_in_the_space(self, space):
        for seen in fixed_observations(space):
            assert inputs_of(space).flatten(seen).shape == (inputs_of(space).size,)
            assert space.contains(seen)

    def test_they_are_the_same_for_ever(self):
        """Files hold what policies gave on these: other numbers would refuse all of them."""
        space = spaces.Dict(
            pos=spaces.Box(-1, 3, (2,), np.float64),
            far=spaces.Box(-np.inf, np.inf, (1,), np.float64),
            att=spaces.Tuple([spaces.Discrete(3, start=2), spaces.MultiBinary(2)]),
            img=spaces.Box(0, 255, (1, 2), np.uint8),
            say=spaces.MultiDiscrete([2, 3], start=[1, -2]),
        )
        numbers = [-0.8317163289875396, -0.5740522832759325, 0.6287844540862011]
        want = [*numbers, *(0, 1, 0), *(1, 0), *(248, 32), *(1, 0), *(0, 0, 1)]
        np.testing.assert_allclose(flattened(space)[0], want, rtol=1e-12)
        theta = [0.277633614859616, 2.6911550813538927, -1.8235266824273402]
        np.testing.assert_allclose(fixed_thetas(3, 1.0, 2.0)[0], theta, rtol=1e-12)

    def test_the_order_of_keys_changes_no_observation_but_its_numbers(self):
        one, other = (make().observation_space for make in (Glider, sorted_glider))
        for seen, too in zip(fixed_observations(one), fixed_observations(other), strict=True):
            for key in ("pos", "vel", "att"):
                np.testing.assert_array_equal(seen[key], too[key])
        assert not np.isclose(flattened(one), flattened(other)).all(1).any()


class TestFingerprints:
    @pytest.fixture
    def saved(self, tmp_path):
        """A normalised policy of a Dict, in a file."""
        env = Glider()
        observed = np.random.default_rng(0).normal(size=(20, 5))
        between = env.observation_space, env.action_space
        policy = make_policy("mlp", {"hidden": 4}, *between, observed, True)
        theta = np.random.default_rng(1).normal(size=policy.parameters)
        return save_policy(tmp_path / "p.npz", policy, theta)

    @staticmethod
    def changed(path, change):
        with np.load(path) as arrays:
            found = dict(arrays)
        plain = json.loads(str(found["policy"]))
        change(found, plain["policy"])
        np.savez(path, **{**found, "policy": np.array(json.dumps(plain))})

    def test_the_file_has_what_the_policy_gives(self, saved):
        with np.load(saved) as arrays:
            inputs, outputs = arrays["fingerprint_inputs"], arrays["fingerprint_outputs"]
        policy = recoup.load_policy(saved)
        assert inputs.shape == (5, 5)
        seen = fixed_observations(policy.policy.observations, 64)
        thetas = [policy.theta, *fixed_thetas(policy.theta.size, std=np.abs(policy.theta).max())]
        wanted = [policy.policy.numbers(theta)(one) for theta in thetas for one in seen]
        np.testing.assert_array_equal(outputs, wanted)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda a, p: p["observations"]["dict"].reverse(), "becomes other numbers than when"),
            (lambda a, p: p["scale"]["mean"].reverse(), "does not give what it gave"),
            (lambda a, p: p["scale"]["std"].__setitem__(0, 1.5), "does not give what it gave"),
            (lambda a, p: a["theta"].__setitem__(3, 0.7), "does not give what it gave"),
            (lambda a, p: a.update(fingerprint_outputs=np.array("x")), "cannot be read"),
            (lambda a, p: a.update(fingerprint_outputs=np.ones((5, 3))), "shape"),
            (lambda a, p: a.update(fingerprint_inputs=np.ones(5)), "becomes other numbers"),
            (lambda a, p: p["observations"]["dict"].append(["pos", {}]), "cannot be read|twice"),
            (lambda a, p: p["observations"]["dict"].append([[], {}]), "cannot be read"),
            (lambda a, p: p.update(observations=3), "cannot be read"),
        ],
    )
    def test_what_was_changed_is_noticed(self, saved, change, message):
        self.changed(saved, change)
        with pytest.raises(InputError, match=message):
            recoup.load_policy(saved)

    def test_rounding_on_other_processors_is_none(self, saved):
        def rounds(arrays, plain):
            arrays["fingerprint_outputs"] *= 1 + 1e-9
            arrays["fingerprint_inputs"] *= 1 - 1e-9

        self.changed(saved, rounds)
        recoup.load_policy(saved)

    def test_small_numbers_beside_large_ones_may_be_rounded(self):
        was = np.array([[1e6, 1e-9], [2e6, 0.0]])
        assert is_same(was, was + np.array([[1e-3, 1e-7], [0, 0]]), OWN_ERROR)
        assert not is_same(was, was + np.array([[10.0, 0], [0, 0]]), OWN_ERROR)

    def test_of_choices_one_in_twenty_may_be_a_tie(self):
        was = np.arange(64.0)[:, None] % 3
        for others, same in ((0, True), (3, True), (4, False)):
            now = was + (np.arange(64) < others)[:, None]
            assert is_same(was, now, OTHERS_ERROR, choices=True) is same
        assert not is_same(was, now, OTHERS_ERROR)

    @pytest.mark.parametrize("seed", range(9))
    @pytest.mark.parametrize("change", [lambda o: o[::-1], lambda o: o[[1, 0, 2, 3]], np.negative])
    def test_another_policy_that_chooses_is_noticed(self, seed, change):
        env = gymnasium.make("CartPole-v1")
        between = env.observation_space, env.action_space
        theta = np.random.default_rng(seed).normal(size=4)
        for thetas in (fixed_thetas(4, theta, 1.0), thetas_beside(theta)):
            stored = fingerprint(Chooses(), thetas, between[0])
            check_fingerprint("p", stored, Chooses(), thetas, between)
            with pytest.raises(InputError, match="not the one that was trained"):
                check_fingerprint("p", stored, Chooses(change), thetas, between)

    def test_actions_at_whole_bounds_are_no_choices(self):
        class Pushes(Chooses):
            def act(self, theta, observation):
                return np.array([1.0 if np.dot(theta, observation) > -5 else self.gain])

        was, other = Pushes(), Pushes()
        was.gain, other.gain = -1.0, -0.9
        thetas, seen = fixed_thetas(3, 0.0, 2.0), BOX
        stored = fingerprint(was, thetas, seen)
        apart = np.any(stored != fingerprint(other, thetas, seen), axis=1).mean()
        assert 0 < apart < 0.05
        assert set(stored.ravel()) == {-1.0, 1.0}
        with pytest.raises(InputError, match="not the one that was trained"):
            check_fingerprint("p", stored, other, thetas, (seen, spaces.Box(-1, 1, (1,))))
        whole = spaces.Dict(a=spaces.Discrete(3), b=spaces.Tuple([spaces.MultiBinary(2)]))
        check_fingerprint("p", stored, other, thetas, (seen, whole))

    def test_large_observations_are_fewer(self):
        sizes = {4: 64, 1024: 64, 4096: 16, 84 * 84 * 3: 8}
        assert {i: count_for(spaces.Box(0, 1, (i,))) for i in sizes} == sizes
        assert count_for(spaces.Discrete(10**9)) == 8

    def test_a_memory_is_part_of_it_and_starts_anew(self):
        seen = spaces.Box(-1, 1, (1,))
        with_memory, without = (
            fingerprint(Recurrent(), np.array([[0.1, weight, 0.2]]), seen) for weight in (0.5, 0.0)
        )
        first = np.arange(64) % 8 == 0  # of an episode
        np.testing.assert_array_equal(with_memory[first], without[first])
        assert not np.isclose(with_memory[~first], without[~first]).any()

    def test_none_where_it_says_nothing(self):
        class Raises(Recurrent):
            def act(self, theta, observation, state):
                raise RuntimeError("the robot is off")

        class Talks(Recurrent):
            def act(self, theta, observation, state):
                return "left", state

        class Counts:
            parameters, calls = 1, 0

            def act(self, theta, observation):
                self.calls += 1
                return self.calls

        counts = Counts()
        for policy in (Raises(), Talks(), counts):
            assert fingerprint(policy, np.zeros((1, 3)), BOX) is None
        assert counts.calls == 0  # a copy was called
