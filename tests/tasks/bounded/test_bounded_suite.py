"""The bounded suite, against plain loops, scipy's filters and optima, and counted trials."""

import numpy as np
import pytest
from scipy import optimize, signal

from recoup.tasks.bounded import arms, furnace, notch, quadrotor
from recoup.tasks.bounded.bounded_suite import BOUNDED, HALVES, bounded_task
from recoup.tasks.bounded.landscapes import michalewicz, michalewicz_best, styblinski_tang

NAMES = list(BOUNDED)
SIMULATED = ("bounded-arm-2", "bounded-arm-3", "bounded-furnace", "bounded-notch")


def points(task, count, seed=0):
    """Candidates anywhere in the box, in units."""
    return task.box.units(np.random.default_rng(seed).random((count, task.row.dim)))


def test_halves_hold_every_kind_once_and_all_tasks_together():
    halves = {half: [BOUNDED[name].kind for name in names] for half, names in HALVES.items()}
    kinds = sorted(halves["bounded-tuning"])
    assert kinds == sorted(halves["bounded-untouched"]) == sorted(set(kinds))
    assert sorted(sum(HALVES.values(), ())) == sorted(NAMES)
    assert len(NAMES) >= 16
    assert {2, 20} <= {row.dim for row in BOUNDED.values()}
    assert {row.best for row in BOUNDED.values()} == {"centre", "anywhere", "border", "corner"}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_better_than_the_best_which_lies_elsewhere_in_every_run(name):
    found = [bounded_task(name, seed) for seed in range(3)]
    for task in found:
        params = [task.params[name] for name in task.box.names]
        assert all(low <= x <= high for x, (low, high, _) in zip(task.best, params, strict=True))
        assert task.top == task.true_return(dict(zip(task.box.names, task.best, strict=True)))
        inside = task.box.unit(task.best)
        near = inside + 0.02 * np.random.default_rng(1).standard_normal((20, task.row.dim))
        others = np.concatenate([points(task, 20), task.box.units(near)])
        slack = 2e-3 * abs(task.top) + 1e-3
        assert max(map(task.true_return, others)) <= task.top + slack
    places = np.array([task.box.unit(task.best) for task in found])
    assert len(np.unique(places, axis=0)) == 3
    again = bounded_task(name, 0)
    assert again.params == found[0].params
    np.testing.assert_array_equal(again.best, found[0].best)


@pytest.mark.parametrize("name", NAMES)
def test_returns_lie_around_the_true_return(name):
    task = bounded_task(name, 5)
    candidate = task.box.units(0.5 * (task.box.unit(task.best) + 0.5))
    count = 4000 if name not in (*SIMULATED, "bounded-quadrotor") else 1000
    returns = task.returns(np.tile(candidate, (count, 1)), range(count))
    assert task.rollout(candidate, 7) == pytest.approx(returns[7], rel=1e-12)
    returns = np.where(np.isnan(returns), task.placed.floor, returns)
    error = returns.std(ddof=1) / count**0.5
    if task.row.kind in ("control", "process", "crash"):  # 256 fixed episodes have an error too
        error = np.hypot(error, returns.std(ddof=1) / 256**0.5)
    assert abs(returns.mean() - task.true_return(candidate)) < 4 * error + 1e-12


def test_a_box_holds_whole_numbers_and_log_scales():
    task = bounded_task("bounded-bowl-3", 0)
    assert task.params == {
        "rate1": (0.001, 10.0, "log"),
        "count1": (1, 20, "int"),
        "x1": (-2.0, 3.0, "linear"),
    }
    np.testing.assert_allclose(task.box.units(np.full(3, 0.5)), [0.1, 10, 0.5])
    cells = np.linspace(0, 1, 4001)[:-1] + 1 / 8000
    counts = task.box.units(np.stack([cells] * 3, -1))[:, 1]
    np.testing.assert_array_equal(np.unique(counts, return_counts=True)[1], np.full(20, 200))
    values = points(task, 50)
    np.testing.assert_allclose(task.box.units(task.box.unit(values)), values)


def test_landscapes_are_highest_where_the_literature_says():
    best = np.array(michalewicz_best(5, 10))
    assert michalewicz(best, 10) == pytest.approx(4.687658, abs=1e-6)
    assert michalewicz(np.array(michalewicz_best(2, 10)), 10) == pytest.approx(1.8013, abs=1e-4)
    found = optimize.minimize(lambda x: -styblinski_tang(x), np.full(3, -3.0))
    np.testing.assert_allclose(found.x, -2.903534, atol=1e-5)
    assert -found.fun == pytest.approx(3 * 39.16617, abs=1e-4)


def test_the_true_return_beside_a_cliff_by_counting_crashes():
    task = bounded_task("bounded-cliff-4", 2)
    x = task.placed.best.copy()
    crashed = []
    for step in np.linspace(0.0, 0.5, 6):
        at = np.clip(x + step * np.sign(x - 0.5), 0, 1)
        returns = task.returns(np.tile(task.box.units(at), (2000, 1)), range(2000))
        share = np.isnan(returns).mean()
        level = -10 * np.sum((at - x) ** 2)
        crashed.append(share)
        expected = (1 - share) * level + share * -25.0
        error = 25 * np.sqrt(0.25 / 2000)  # of the share of crashes, at most
        assert abs(task.true_return(task.box.units(at)) - expected) < 4 * error
    assert crashed[0] < 0.01
    assert max(crashed) > 0.99


@pytest.mark.parametrize("joints", [2, 3])
def test_an_arm_is_a_plain_loop(joints):
    rng = np.random.default_rng(joints)
    gains, noise = np.exp(rng.normal(2, 1, 2 * joints)), rng.standard_normal(2 * joints)
    kp, kd = gains[:joints], gains[joints:]
    q, target, v = 0.2 * noise[:joints], 0.8 + 0.2 * noise[joints:], np.zeros(joints)
    lengths, masses, limits = (0.4, 0.35, 0.3), (1.2, 0.9, 0.8), (40.0, 20.0, 8.0)
    paid = 0.0
    for _ in range(40):
        torque = np.zeros(joints)
        for i in range(joints):
            error = target[i] - q[i] - (target[i - 1] - q[i - 1] if i else 0)
            rate = v[i] - (v[i - 1] if i else 0)
            torque[i] = min(max(kp[i] * error - kd[i] * rate, -limits[i]), limits[i])
            paid += 2e-4 * torque[i] ** 2 + 0.01 * rate**2
        inertia, force = np.zeros((joints, joints)), np.zeros(joints)
        for i in range(joints):
            rate = v[i] - (v[i - 1] if i else 0)
            force[i] += torque[i] - 0.3 * rate
            inertia[i, i] += 0.15
            if i:
                force[i - 1] -= torque[i] - 0.3 * rate
                inertia[i - 1, i - 1] += 0.15
                inertia[i, i - 1] -= 0.15
                inertia[i - 1, i] -= 0.15
            for j in range(joints):
                both = sum(masses[max(i, j) : joints]) * lengths[i] * lengths[j]
                inertia[i, j] += both * np.cos(q[i] - q[j])
                force[i] -= both * np.sin(q[i] - q[j]) * v[j] ** 2
        v = np.clip(v + 0.025 * np.linalg.inv(inertia) @ force, -50, 50)
        q = q + 0.025 * v
        paid += np.sum((target - q) ** 2)
    found = arms.arm_returns(joints, np.stack([gains, 2 * gains]), np.stack([noise, noise]))
    assert found[0] == pytest.approx(10 * (1 - paid / 40), rel=1e-9)


def test_a_furnace_is_a_plain_loop():
    rng = np.random.default_rng(3)
    noise = rng.standard_normal(64)
    kp, ki, ahead, count = 0.3, 0.01, 0.1, 4
    goal = 4 + 0.8 * np.tanh(noise[0])
    heats, powers, total, paid = [0.0], [0.0], 0.0, 0.0
    measured = []
    for t in range(60):
        measured.append(heats[-1] + 0.15 * noise[4 + t])
        error = goal - sum(measured[-count:]) / count  # zeros before the first
        wanted = ahead * goal + kp * error + ki * total
        power = min(max(wanted, 0.0), 1.0)
        total += error if power == wanted else 0.0
        arriving = powers[t - 2] if t >= 3 else 0.0
        door = 30 <= t < 30 + 15 + 5 * np.tanh(noise[2])
        loss = (1.5 + 0.5 * np.tanh(noise[1])) * door + 0.7 * noise[3]
        heats.append(heats[-1] + (9 * arriving - heats[-1] - loss) / 25)
        paid += abs(goal - heats[-1]) + 2 * abs(power - powers[-1])
        powers.append(power)
    gains = np.array([[kp, ki, ahead, count]])
    assert furnace.furnace_returns(gains, noise[None])[0] == pytest.approx(-paid / 60, rel=1e-9)


def test_a_notch_is_scipys_filter():
    noise = np.random.default_rng(4).standard_normal(103)
    where, width, cutoff = 0.6, 0.4, 0.7
    t = np.arange(100)
    clean = np.sin(0.06 * 2 ** (0.5 * np.tanh(noise[0])) * t + 3 * noise[1])
    came = clean + np.sin(0.55 * t + 3 * noise[2]) + 0.3 * noise[3:]
    r = np.exp(-width / 2)
    zeros, poles = ([1, -2 * s * np.cos(where), s**2] for s in (1, r))
    zeros = np.array(zeros) * sum(poles) / sum(zeros)
    filtered = signal.lfilter(zeros, poles, came, zi=came[0] * signal.lfilter_zi(zeros, poles))[0]
    share = 1 - np.exp(-cutoff)
    slow = ([share], [1, share - 1])
    filtered = signal.lfilter(*slow, filtered, zi=came[0] * signal.lfilter_zi(*slow))[0]
    found = notch.notch_returns(np.array([[where, width, cutoff]]), noise[None])[0]
    assert found == pytest.approx(-10 * np.mean((filtered - clean) ** 2), rel=1e-9)


def test_a_quadrotor_is_a_plain_loop_and_crashes_where_it_turns_over():
    noise = np.random.default_rng(5).standard_normal(164)
    gains = np.array([10.0, 5.0, 0.8, 0.5, 200.0, 30.0])
    x, z, tilt, spin = 0.5 * noise[0], 0.5 * np.tanh(noise[1]), 0.2 * np.tanh(noise[2]), 0.0
    spin += 0.3 * noise[3]
    vx = vz = lift = turn = paid = 0.0
    for t in range(80):
        wanted = min(max(-(gains[2] * x + gains[3] * vx), -0.5), 0.5)
        lift = 0.65 * lift + 0.35 * min(max(-gains[0] * z - gains[1] * vz, -6), 6)
        pull = min(max(gains[4] * (wanted - tilt) - gains[5] * spin, -60), 60)
        turn = 0.65 * turn + 0.35 * pull
        spin += 0.04 * turn
        tilt += 0.04 * spin
        vx += 0.04 * ((9.81 + lift) * np.sin(tilt) + noise[4 + 2 * t])
        vz += 0.04 * ((9.81 + lift) * np.cos(tilt) - 9.81 + noise[5 + 2 * t])
        x, z = x + 0.04 * vx, z + 0.04 * vz
        paid += x**2 + 2 * z**2 + 0.3 * tilt**2 + 0.004 * lift**2
    returns = quadrotor.quadrotor_returns(
        np.stack([gains, gains * [1, 1, 1, 1, 9, 0.1]]), np.stack([noise, noise])
    )
    assert returns[0] == pytest.approx(-10 * paid / 80, rel=1e-9)
    assert np.isnan(returns[1])


@pytest.mark.parametrize("name", SIMULATED)
def test_scipy_finds_no_better_gains(name):
    task = bounded_task(name, 1)
    start = task.placed.best

    def cost(x):
        if (x < 0).any() or (x > 1).any():
            return 1e3
        return -task.true_return(task.box.units(x))

    found = optimize.minimize(cost, start, method="Nelder-Mead", options={"maxfev": 60})
    assert -found.fun <= task.top + 2e-3 * abs(task.top)
