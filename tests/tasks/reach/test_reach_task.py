"""The reaching tasks: the body against its table, the batch engine against a plain loop."""

import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import optimize

import recoup
from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import discounted_rewards
from recoup.tasks.reach.batch_engine import ReachBody, engine_of
from recoup.tasks.reach.body import compile_body, import_mujoco, servos_of
from recoup.tasks.reach.reach_task import _draws
from recoup.tasks.reach.rules import FAR, NEAR, reach
from recoup.tasks.registry import make_env, make_task, task_row

mujoco = import_mujoco()
H = 1.575
KINDS = {  # Kp, Kd, torque limit, armature
    "sh": (15, 6, 60, 0.1),
    "el": (7.5, 2, 30, 0.05),
    "waist": (30, 15, 60, 0.3),
    "torso": (75, 35, 100, 0.3),
}
RANGES = {
    "sh_pitch": (-30, 120),
    "sh_roll": (0, 80),
    "el_pitch": (0, 120),
    "waist_yaw": (-45, 45),
    "torso_roll": (-15, 15),
    "torso_pitch": (-10, 30),
}
AXES = {
    "waist_yaw": (0, 0, 1),
    "torso_roll": (1, 0, 0),
    "torso_pitch": (0, 1, 0),
    "r_sh_pitch": (0, -1, 0),
    "r_sh_roll": (-1, 0, 0),
    "r_el_pitch": (0, -1, 0),
    "l_sh_pitch": (0, -1, 0),
    "l_sh_roll": (1, 0, 0),
    "l_el_pitch": (0, -1, 0),
}


def kind(name):
    return next(k for k in KINDS if k in name.split("_"))


@pytest.fixture(scope="module")
def body():
    return compile_body(9, FAR)


class TestTheBodyIsItsTable:
    def test_joints_stand_in_their_order_and_so_do_the_actuators(self, body):
        names = [body.joint(i).name for i in range(body.njnt)]
        assert names == list(AXES)
        assert [body.actuator(i).name for i in range(body.nu)] == names
        assert list(body.actuator_trnid[:, 0]) == list(range(9))

    @pytest.mark.parametrize("name", AXES)
    def test_axes_ranges_gains_limits_and_armatures(self, body, name):
        joint, actuator = body.joint(name), body.actuator(name)
        kp, kd, limit, armature = KINDS[kind(name)]
        np.testing.assert_array_equal(joint.axis, AXES[name])
        span = RANGES[name.removeprefix("r_").removeprefix("l_")]
        np.testing.assert_allclose(np.degrees(joint.range), span)
        assert actuator.gainprm[0] == kp
        np.testing.assert_array_equal(actuator.biasprm[:3], [0, -kp, -kd])
        np.testing.assert_array_equal(actuator.forcerange, [-limit, limit])
        assert joint.armature[0] == armature
        assert joint.damping[0] == 0.5

    def test_masses(self, body):
        geoms = {body.geom(i).name: i for i in range(body.ngeom)}
        masses = {body.body(i).name: body.body_mass[i] for i in range(body.nbody)}
        assert masses["torso"] == pytest.approx(32.66 + 7.452)
        for side in "rl":
            assert masses[f"{side}_upper_arm"] == pytest.approx(2.576)
            assert masses[f"{side}_forearm"] == pytest.approx(1.472 + 0.552)
        assert body.body_mass.sum() == pytest.approx(40.112 + 2 * 4.6)
        sizes = {"r_upper_arm": 0.045, "l_forearm": 0.038, "r_hand_mass": 0.05, "head_mass": 0.09}
        for name, radius in sizes.items():
            assert body.geom_size[geoms[name], 0] == radius
        box = geoms["thorax_mass"]
        np.testing.assert_allclose(body.geom_size[box], [0.10, 0.1532, 0.1717])
        np.testing.assert_allclose(body.geom_pos[box], [0, 0, 0.1888])

    def test_every_massive_geom_on_both_sides(self, body):
        """Mass, radius and place of each, in its own body."""
        want = {"thorax_mass": (32.66, 0.10, 0.1888), "head_mass": (7.452, 0.09, 0.93 * H - 0.945)}
        for side in "rl":
            want[f"{side}_upper_arm"] = (2.576, 0.045, -0.2930 / 2)
            want[f"{side}_forearm"] = (1.472, 0.038, -0.2300 / 2)
            want[f"{side}_hand_mass"] = (0.552, 0.05, -(0.2300 + 0.0851))
        written = {g.name: g.mass for g in mujoco.MjSpec.from_string(xml()).geoms if g.mass != 0}
        assert written == {name: mass for name, (mass, *_) in want.items()}
        for name, (_, radius, height) in want.items():
            assert body.geom(name).size[0] == radius, name
            assert body.geom(name).pos == pytest.approx([0, 0, height], abs=1e-9), name

    @pytest.mark.parametrize(
        ("joints", "target"), [(2, (0.603, -0.203, 1.237)), (4, FAR), (9, (0.637, 0.015, 1.237))]
    )
    def test_the_defaults_are_those_of_the_specification(self, joints, target):
        want = (joints, target, "scaled", "torque", False, 0.02, 1.0, 0.0005)
        assert tuple(reach(joints)) == want
        row = task_row(f"reach-{joints}")
        assert (row.horizon, row.discount, row.batch, row.epsilon) == (100, 0.9, 3, 0.1)
        assert row.test_episodes == 50

    def test_what_only_shows_has_no_mass(self):
        """Left out, the decorations change neither a mass nor an inertia."""
        spec = mujoco.MjSpec.from_string(xml())
        for geom in list(spec.geoms):
            if geom.mass == 0:
                spec.delete(geom)
        bare, full = spec.compile(), compile_body(9, NEAR)
        assert bare.ngeom == 8
        for field in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
            np.testing.assert_allclose(getattr(bare, field), getattr(full, field), atol=1e-12)

    def test_heights_and_lengths_of_the_body_at_rest(self, body):
        data = mujoco.MjData(body)
        mujoco.mj_forward(body, data)
        where = {body.body(i).name: data.xpos[i] for i in range(body.nbody)}
        np.testing.assert_allclose(where["torso"], [0, 0, 0.60 * H], atol=5e-4)
        np.testing.assert_allclose(where["r_upper_arm"], [0, -0.129 * H, 0.818 * H], atol=5e-4)
        np.testing.assert_allclose(where["l_upper_arm"], [0, 0.129 * H, 0.818 * H], atol=5e-4)
        np.testing.assert_allclose(where["r_upper_arm"] - where["r_forearm"], [0, 0, 0.2930])
        hand = data.site("hand").xpos
        np.testing.assert_allclose(where["r_forearm"] - hand, [0, 0, 0.2300 + 0.0851], atol=1e-12)
        head = data.geom("head_mass").xpos
        np.testing.assert_allclose(head, [0, 0, 0.93 * H], atol=1e-9)
        assert abs(where["r_upper_arm"][2] - hand[2]) == pytest.approx(0.608, abs=5e-4)

    @pytest.mark.parametrize(
        ("name", "direction"),
        [
            ("r_sh_pitch", (1, 0, 1)),  # raises the hand forward
            ("l_sh_pitch", (1, 0, 1)),
            ("r_sh_roll", (0, -1, 1)),  # out to its side
            ("l_sh_roll", (0, 1, 1)),
            ("r_el_pitch", (1, 0, 1)),
            ("l_el_pitch", (1, 0, 1)),
            ("waist_yaw", (1, 1, 0)),  # to the left: the right shoulder comes forward
            ("torso_roll", (0, -1, -1)),  # to the right
            ("torso_pitch", (1, 0, -1)),  # leans forward
        ],
    )
    def test_positive_directions(self, body, name, direction):
        """Where the hand of that side goes, or for the torso the right shoulder."""
        data = mujoco.MjData(body)
        point = "r_upper_arm" if "_sh_" not in name and "_el_" not in name else f"{name[0]}_palm"

        def where():
            mujoco.mj_kinematics(body, data)
            found = data.geom(point) if point.endswith("palm") else data.body(point)
            return found.xpos.copy()

        before = where()
        data.joint(name).qpos = 0.2
        moved = where() - before
        np.testing.assert_array_equal(np.sign(np.round(moved, 9)), direction)

    def test_gravity_is_compensated_and_contacts_are_off(self, body):
        assert body.opt.gravity[2] == -9.81
        assert body.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
        assert body.opt.timestep == 0.01
        assert body.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        data = mujoco.MjData(body)
        data.qpos[:] = data.ctrl[:] = 0.4 * servos_of(body).high
        mujoco.mj_step(body, data, nstep=200)
        np.testing.assert_allclose(data.qpos, 0.4 * servos_of(body).high, atol=1e-9)

    def test_only_the_torso_reaches_the_far_target(self):
        assert nearest_distance(4, FAR, free=[1, 2, 3]) == pytest.approx(0.221, abs=1e-3)
        assert nearest_distance(4, FAR, free=[0, 1, 2, 3]) < 1e-3
        assert nearest_distance(2, NEAR, free=[0, 1]) < 5e-3


def xml():
    from importlib.resources import files

    return (files("recoup.tasks.reach") / "upper_body.xml").read_text()


def nearest_distance(joints, target, free):
    """The least distance of the hand from `target` over the ranges of the free joints."""
    model = compile_body(joints, target)
    data, servos = mujoco.MjData(model), servos_of(model)

    def distance(x):
        data.qpos[free] = x
        mujoco.mj_kinematics(model, data)
        return float(np.linalg.norm(data.site("hand").xpos - target))

    bounds = list(zip(servos.low[free], servos.high[free], strict=True))
    starts = np.random.default_rng(0).uniform(servos.low[free], servos.high[free], (12, len(free)))
    options = {
        "bounds": bounds,
        "method": "Nelder-Mead",
        "options": {"xatol": 1e-8, "fatol": 1e-9, "maxiter": 4000},
    }
    return min(optimize.minimize(distance, x, **options).fun for x in starts)


def plain_rewards(task, theta, noise):
    """One episode at a time, one `mj_step` after the other, the table's numbers written out."""
    model = compile_body(task.joints, task.target)
    names = [model.joint(i).name for i in range(model.njnt)]
    kp, kd, limit, _ = np.array([KINDS[kind(name)] for name in names], float).T
    zero = np.array([np.pi / 2 if name.endswith("sh_pitch") else 0.0 for name in names])
    low, high = np.radians([RANGES[n.removeprefix("r_").removeprefix("l_")] for n in names]).T
    rewards = np.zeros(noise.shape[:2])
    for n in range(len(theta)):
        data = mujoco.MjData(model)
        gains = theta[n].reshape(2 * task.joints, task.joints)
        for t in range(noise.shape[1]):
            seen = np.concatenate([0.4 * (data.qpos - zero), 0.1 * data.qvel])
            sent = np.clip(gains.T @ seen + zero + noise[n, t], low, high)
            torque = np.clip(kp * (sent - data.qpos) - kd * data.qvel, -limit, limit)
            data.ctrl[:] = sent
            for _ in range(10):
                mujoco.mj_step(model, data)
            mujoco.mj_kinematics(model, data)
            d = np.linalg.norm(data.site("hand").xpos - task.target)
            rewards[n, t] = np.exp(-10 * d) - 0.0005 * min((torque**2).sum(), 10000)
    return rewards


def some_policies(task, n, horizon, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n, task.size * task.joints))
    return theta, 0.02 * rng.normal(size=(n, horizon, task.joints))


def act_of(task, theta):
    gains = theta.reshape(len(theta), task.size, task.joints)
    return lambda t, seen: np.einsum("nf,nfa->na", seen, gains)


class TestTheEngine:
    @pytest.mark.parametrize("joints", [2, 4, 9])
    def test_equals_a_plain_loop(self, joints):
        task = reach(joints)
        theta, noise = some_policies(task, 4, 100)
        went = engine_of(task).run(act_of(task, theta), noise)
        scale = 0.9 ** np.arange(100)
        want = plain_rewards(task, theta, noise) @ scale
        np.testing.assert_allclose(went.rewards @ scale, want, rtol=0, atol=1e-10)
        assert np.ptp(want) > 0.1

    def test_any_number_of_threads_gives_the_same_bits(self):
        task = reach(4)
        theta, noise = some_policies(task, 9, 30)
        one, three = (
            ReachBody(task, threads).run(act_of(task, theta), noise) for threads in (1, 3)
        )
        for a, b in zip(one[:5], three[:5], strict=True):
            np.testing.assert_array_equal(a, b)

    def test_an_episode_does_not_depend_on_its_neighbours(self):
        task = make_task("reach-2", horizon=20)
        for seed in range(10):
            theta = np.random.default_rng(seed).normal(size=(5, 8))
            keys = jax.random.split(jax.random.key(seed), 5)
            together = task.rollouts(keys, theta)
            np.testing.assert_array_equal(task.rollouts(keys[2:4], theta[2:4]), together[2:4])
            np.testing.assert_array_equal(task.rollouts(keys, theta), together)

    def test_threads_that_share_a_task_do_not_disturb_each_other(self):
        task = make_task("reach-2", horizon=20)
        keys = jax.random.split(jax.random.key(0), 3)
        thetas = np.random.default_rng(0).normal(size=(6, 3, 8))
        alone = [task.rollouts(keys, theta) for theta in thetas]
        with ThreadPoolExecutor(6) as pool:
            together = list(pool.map(lambda theta: task.rollouts(keys, theta), thetas))
        np.testing.assert_array_equal(together, alone)

    @pytest.mark.parametrize(
        ("keys", "theta", "sentence"),
        [(3, (1, 8), r"theta must have shape \[N, D\] = \[3, 8\]"), (0, (0, 8), "at least one")],
    )
    def test_wrong_batches_get_one_sentence(self, keys, theta, sentence):
        with pytest.raises(ValueError, match=sentence):
            make_task("reach-2").rollouts(jax.random.split(jax.random.key(0), keys), np.ones(theta))
        with pytest.raises(ValueError, match=r"noise must have shape"):
            engine_of(reach(2)).run(lambda t, seen: np.zeros((1, 2)), np.zeros((1, 4, 1)))

    def test_a_broken_episode_fails_alone_and_by_name(self, caplog):
        task = reach(2)
        theta, noise = some_policies(task, 4, 20)
        good = engine_of(task).run(act_of(task, theta), noise)
        broken = theta.copy()
        broken[1] = np.nan
        went = engine_of(task).run(act_of(task, broken), noise)
        assert went.failures == {1: "step 0: the action is not finite"}
        assert "episode 1 of 4 failed: step 0: the action is not finite" in caplog.text
        assert np.isnan(went.rewards[1]).all()
        np.testing.assert_array_equal(went.rewards[[0, 2, 3]], good.rewards[[0, 2, 3]])

    def test_a_warning_of_mujoco_fails_the_episode(self, caplog, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)  # where MuJoCo writes its own log
        task = reach(2)
        theta, noise = some_policies(task, 3, 10)
        engine = ReachBody(task)
        act = act_of(task, theta)

        def shove(t, seen):
            if t == 4:
                engine._batch(3).bind("qvel")[2] = 1e12
            return act(t, seen)

        went = engine.run(shove, noise)
        assert list(went.failures) == [2]
        assert "step 4: MuJoCo warns of BADQ" in went.failures[2]
        assert np.isfinite(went.rewards[:2]).all()
        assert np.isfinite(went.rewards[2, :4]).all()
        assert np.isnan(went.rewards[2, 4:]).all()
        assert not ReachBody(task).run(act, noise).failures
        assert not engine.run(act, noise).failures  # and the next run starts afresh

    def test_trajectories_of_gaussian_policies_each_episode_by_its_own(self):
        task = make_task("reach-2", horizon=15)
        rng = np.random.default_rng(0)
        mu, sigma = rng.normal(size=(6, 8)), np.linspace([0.3, 0.1], [0.6, 0.2], 6)
        keys = jax.random.split(jax.random.key(1), 6)
        with jax.enable_x64(True):
            h = task.episodes(keys, Policy(jnp.asarray(mu), jnp.asarray(sigma)))
            still = task.episodes(keys, Policy(jnp.asarray(mu), jnp.zeros((6, 2))))
            returns = jax.vmap(lambda x: jnp.sum(discounted_rewards(0.9, x)))(still)
        assert h.features.shape == (6, 15, 4)
        means = np.stack(
            [f @ m.reshape(4, 2) for f, m in zip(np.asarray(h.features), mu, strict=True)]
        )
        pushes = (np.asarray(h.actions) - means) / sigma[:, None]
        assert abs(pushes.mean()) < 4 / np.sqrt(pushes.size)
        assert abs(pushes.std() - 1) < 4 / np.sqrt(2 * pushes.size)
        noise, drawn = _draws(2, 15, keys)
        np.testing.assert_allclose(drawn, pushes, rtol=1e-6, atol=1e-9)
        assert abs(np.corrcoef(noise.ravel(), drawn.ravel())[0, 1]) < 4 / np.sqrt(noise.size)
        np.testing.assert_allclose(returns, task.rollouts(keys, mu), rtol=1e-9)


class TestOptions:
    def test_raw_features_and_a_bias(self):
        task = reach(2, features="raw", bias=True)
        engine = engine_of(task)
        went = engine.run(lambda t, seen: np.full((1, 2), 0.1), np.zeros((1, 5, 2)))
        np.testing.assert_allclose(went.features[0, 0], [-np.pi / 2, 0, 0, 0, 1])
        scaled = engine_of(reach(2)).run(lambda t, seen: np.full((1, 2), 0.1), np.zeros((1, 5, 2)))
        scale = [0.4, 0.4, 0.1, 0.1]
        np.testing.assert_allclose(went.features[..., :4] * scale, scaled.features, rtol=1e-12)
        assert make_task("reach-2", bias=True).dim == 10

    def test_the_cost_of_angles(self):
        task = reach(2, cost="angle", noise=0.0, k1=0.0, k2=1.0)
        went = engine_of(task).run(lambda t, seen: np.zeros((1, 2)), np.zeros((1, 1, 2)))
        assert went.cost[0, 0] == pytest.approx(90.0**2)
        assert went.rewards[0, 0] == pytest.approx(-(90.0**2))

    def test_the_cost_is_held_to_ten_thousand(self):
        task = reach(9, cost="angle", noise=0.0, k1=0.0, k2=1.0)
        went = engine_of(task).run(lambda t, seen: np.full((1, 9), 9.0), np.zeros((1, 1, 9)))
        assert went.cost[0, 0] > 10_000
        assert went.rewards[0, 0] == -10_000

    def test_a_target_of_ones_own(self):
        where = (0.3, -0.4, 1.1)
        task = make_task("reach-2", target=where, horizon=5)
        env = make_env("reach-2", target=where)
        env.reset(seed=0)
        assert env.unwrapped.engine.model.body("target").pos.tolist() == list(where)
        assert task.rollouts(jax.random.split(jax.random.key(0), 1), np.zeros((1, 8))).shape == (1,)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"features": "scald"}, "features must be one of scaled, raw.*Did you mean 'scaled'"),
            ({"cost": 3}, "cost must be one of torque, angle"),
            ({"noise": -1}, "noise must be at least 0"),
            ({"target": [1, 2]}, r"target must have shape \[x, y, z\] = \[3\], got \[2\]"),
            ({"bias": 1}, "bias must be True or False"),
            ({"k3": 1}, "'k3' is not an option of reach-2; its options are target, features"),
            ({"joints": 4}, "'joints' is not an option of reach-2"),
        ],
    )
    def test_bad_options_get_one_sentence(self, options, sentence):
        with pytest.raises(ValueError, match=sentence):
            make_task("reach-2", **options)

    def test_a_wrong_number_of_joints(self):
        for wrong in (3, 2.0, [2]):
            with pytest.raises(ValueError, match="joints must be one of 2, 4, 9; got"):
                gymnasium.make("recoup/Reach-v0", joints=wrong)

    def test_options_of_numpy_are_written_as_plain_numbers(self, tmp_path):
        options = {"target": np.array([0.5, -0.2, 1.2]), "noise": np.float32(0.5)}
        out = tmp_path / "run"
        recoup.train("reach-2", "pgpe-ob", iterations=1, horizon=3, options=options, out=out)
        config = json.loads((out / "config.json").read_text())
        assert config["options"] == {"target": [0.5, -0.2, 1.2], "noise": 0.5}
        assert config["versions"]["mujoco"] == mujoco.__version__


class TestTheEnvironment:
    @pytest.mark.parametrize("joints", [2, 4, 9])
    def test_env_checker_finds_nothing(self, joints, recwarn):
        env = gymnasium.make("recoup/Reach-v0", joints=joints)
        check_env(env.unwrapped, skip_render_check=True)
        words = ("infinity", "symmetric and normalized")  # the spaces are unbounded
        others = [str(w.message) for w in recwarn if not any(x in str(w.message) for x in words)]
        assert others == []

    @pytest.mark.parametrize("joints", [2, 9])
    def test_is_the_engine_without_noise(self, joints):
        task = reach(joints, noise=0.0)
        theta, noise = some_policies(task, 1, 40, seed=3)
        went = engine_of(task).run(act_of(task, theta), 0 * noise)
        env = make_env(f"reach-{joints}", noise=0.0, horizon=40)
        observation, _ = env.reset(seed=0)
        policy = make_task(f"reach-{joints}").act
        for t in range(40):
            np.testing.assert_allclose(observation, went.features[0, t], atol=1e-12)
            observation, reward, _, truncated, info = env.step(policy(theta[0], observation))
            assert reward == pytest.approx(went.rewards[0, t], abs=1e-12)
            assert info["distance"] == pytest.approx(went.distance[0, t], abs=1e-12)
        assert truncated

    def test_noise_has_the_standard_deviation_that_was_asked_for(self):
        """Commands around a target angle that is far from the joints' stops."""
        env = make_env("reach-2", noise=0.05)
        env.reset(seed=0)
        sent = []
        for _ in range(500):
            env.step(np.array([-0.5, 1.0]))
            sent.append(env.unwrapped.data.ctrl - env.unwrapped.engine.servos.zero - [-0.5, 1.0])
        assert np.std(sent) == pytest.approx(0.05, abs=4 * 0.05 / np.sqrt(2 * 1000))

    def test_an_action_that_is_not_a_number_is_refused(self):
        env = make_env("reach-2")
        env.reset(seed=0)
        with pytest.raises(ValueError, match="action must be finite"):
            env.step(np.array([np.nan, 0.0]))

    def test_an_unstable_motion_ends_the_episode(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # MuJoCo writes a log where it is
        env = make_env("reach-2").unwrapped
        env.reset(seed=0)
        env.unwrapped.data.qvel[:] = 1e12
        _, reward, terminated, _, info = env.step(np.zeros(2))
        assert terminated
        assert np.isnan(reward)
        assert info["failure"].startswith("MuJoCo warns of")

    def test_survives_pickling(self):
        env = make_env("reach-2").unwrapped
        env.reset(seed=0)
        env.step(np.zeros(2))
        again = pickle.loads(pickle.dumps(env))
        np.testing.assert_array_equal(env.step(np.ones(2))[0], again.step(np.ones(2))[0])

    def test_without_a_display_a_window_is_refused_in_one_sentence(self):
        code = "from recoup.tasks.registry import make_env; make_env('reach-2', 'human').reset()"
        env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
        assert 'there is no display for a window: use render_mode="rgb_array"' in done.stderr

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"joints": 9}, "'joints' is not an option of reach-2"),
            ({"k3": 2}, "'k3' is not an option"),
            ({"horizon": 0}, "horizon must be"),
        ],
    )
    def test_wrong_options_get_one_sentence(self, options, sentence):
        with pytest.raises(ValueError, match=sentence):
            make_env("reach-2", **options)

    def test_seeds_decide_the_noise(self):
        env = make_env("reach-2")
        ends = []
        for seed in (1, 1, 2):
            env.reset(seed=seed)
            for _ in range(5):
                observation, *_ = env.step(np.zeros(2))
            ends.append(observation)
        np.testing.assert_array_equal(ends[0], ends[1])
        assert not np.array_equal(ends[0], ends[2])


@pytest.mark.slow
def test_mjx_agrees_with_the_engine():
    """A tiny size on the CPU; the returns of random policies to 1e-3."""
    pytest.importorskip("mujoco.mjx")
    from recoup.tasks.reach.mjx import mjx_rollouts

    task = reach(4)
    theta, noise = some_policies(task, 6, 12)
    want = engine_of(task).run(act_of(task, theta), noise).rewards @ 0.9 ** np.arange(12)
    rollouts = jax.jit(mjx_rollouts(task, 12, 0.9))
    got = rollouts(jnp.asarray(noise, jnp.float32), jnp.asarray(theta, jnp.float32))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)
    assert np.ptp(want) > 0.05


@pytest.mark.slow
def test_a_run_learns_to_reach():
    """From a start at rest: 15 iterations of 3 episodes, more than 4 s.e. above the start."""
    run = recoup.train("reach-2", "mis-pgpe-ob", iterations=15, seed=1)
    first, last = run.history[0], run.return_search
    error = np.hypot(first.return_curve_stderr, last.stderr)
    assert last.mean - first.return_curve > 4 * error
    assert run.policy(np.zeros(4)).shape == (2,)
