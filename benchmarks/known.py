"""Tasks whose expected return is known, for holding what a study says to the truth.

Intervals and forecasts were made with `MADE_WITH`; `HELD_OUT` was then looked at once, and one
number (by how much a gain in doubt is shrunk) chosen anew with both; `FRESH` only afterwards.
`WIDE`, of many parameters, only after intervals had been widened in many dimensions. `STILL` has no
noise, as a simulator without a random number: the rough kernel was made with its first half.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

GAINS = {"k": (10, 200, "log"), "d": (0, 1), "offset": None}
DRAWS = 4000  # that the mean over a distribution is found with


class Known(NamedTuple):
    """A task: the expected return of theta `[..., D]`, how a study of it starts, its noise."""

    value: Callable
    settings: dict[str, Any]
    noise: float | str  # standard deviation; "success": 1 with the probability that is the value
    top: float  # the highest expected return

    def told(self, theta, rng):
        """What one rollout returns."""
        value = float(self.value(theta))
        if self.noise == "success":
            return float(rng.random() < value)
        if self.noise == "heavy":
            return value + 0.5 * float(rng.standard_t(3))
        return value + float(self.noise) * float(rng.normal())

    def over(self, study, proposal=None):
        """The expected return of a draw of a study's newest distribution, or of one by number."""
        z = np.random.default_rng(0).standard_normal((DRAWS, study.dim))
        of = study.store.newest() if proposal is None else study.store.proposal(proposal)
        rho = study.opened.rho(of.numbers)
        theta = rho.theta(np.concatenate([z, -z]))
        return float(np.mean(self.value(study.opened.in_units(theta))))


def robot(theta):
    k, d, offset = np.moveaxis(theta, -1, 0)
    return -8 * np.log(k / 60) ** 2 - 20 * (d - 0.7) ** 2 - (offset - 0.3) ** 2


def edge(theta):
    k, d = np.moveaxis(theta, -1, 0)
    return -8 * np.log(k / 150) ** 2 - 20 * (d - 0.95) ** 2


def ridge(theta):
    x, y = theta[..., 0] - 1, theta[..., 1] + 0.5
    return -2 * x**2 - 1.6 * x * y - y**2


def ellipse(theta):
    return -np.sum(np.array([0.1, 0.3, 1, 3]) * (theta - [1, -0.5, 0.3, 0.8]) ** 2, axis=-1)


def sphere(theta):
    return -np.sum((theta - np.linspace(-1, 1, theta.shape[-1])) ** 2, axis=-1)


def peaked(theta):
    return -3 * np.sum(np.log1p((theta - 1) ** 2), axis=-1)


def cusp(theta):
    return -np.sum(np.abs(theta - np.linspace(0.3, 1.2, theta.shape[-1])), axis=-1)


def stairs(theta):
    along, across = theta[..., 0] + theta[..., 1], theta[..., 0] - theta[..., 1]
    return (along > 0.5) * 1.0 + (along > 2.0) * 1.0 + 0.5 * (np.abs(across) < 1)


def success(theta):
    far = np.sum((theta - 0.8) ** 2, axis=-1)
    return 0.95 * expit(3 - 2.0 * far)


def banana(theta):
    x, y = theta[..., 0], theta[..., 1]
    return -((1 - x) ** 2) - 5 * (y - x**2) ** 2


def wide(theta):
    scale = np.linspace(0.2, 2, theta.shape[-1])
    return 10 * np.exp(-np.sum(scale * (theta - 0.5) ** 2, axis=-1) / theta.shape[-1])


MADE_WITH = {
    "robot": Known(robot, {"params": GAINS}, 0.5, 0.0),
    "robot, quiet": Known(robot, {"params": GAINS}, 0.05, 0.0),
    "edge": Known(edge, {"params": {"k": (10, 200, "log"), "d": (0, 1)}}, 0.5, 0.0),
    "ridge": Known(ridge, {"dim": 2, "std": 0.5}, 0.5, 0.0),
    "ellipse": Known(ellipse, {"dim": 4}, 0.5, 0.0),
    "sphere 8": Known(sphere, {"dim": 8}, 1.0, 0.0),
    "peaked": Known(peaked, {"dim": 3}, 0.5, 0.0),
    "cusp 3": Known(cusp, {"dim": 3}, 0.2, 0.0),
    "stairs": Known(stairs, {"dim": 2}, 0.3, 2.5),
    "success 2": Known(success, {"dim": 2}, "success", 0.95 * float(expit(3.0))),
    "banana": Known(banana, {"dim": 2}, 0.3, 0.0),
    "smooth 20": Known(wide, {"dim": 20}, 0.5, 10.0),
    "at the top": Known(
        sphere, {"dim": 4, "mean": np.linspace(-1, 1, 4).tolist(), "std": 0.3}, 0.5, 0.0
    ),
    "heavy noise": Known(ellipse, {"dim": 4}, "heavy", 0.0),
}


def pid(theta):
    """Minus the squared error of a step's answer of a second-order plant under p, i and d."""
    p, i, d = (np.asarray(x, float) for x in np.moveaxis(theta, -1, 0))
    x = v = e_sum = cost = np.zeros_like(p)
    for _ in range(120):
        error = 1 - x
        e_sum = e_sum + 0.05 * error
        force = np.clip(p * error + i * e_sum - d * v, -10, 10)
        v = v + 0.05 * (force - 0.4 * v - 1.0 * x)
        x = np.clip(x + 0.05 * v, -5, 5)
        cost = cost + 0.05 * error**2 + 2e-4 * force**2
    return -cost


def arm(theta):
    """Minus the distance of a three-joint arm's hand to a point, and its effort; six numbers."""
    angles = np.cumsum(theta[..., :3], axis=-1)
    x, y = np.sum(np.cos(angles), axis=-1), np.sum(np.sin(angles), axis=-1)
    reach = (x - 1.2) ** 2 + (y - 1.6) ** 2
    return -2 * reach - 0.3 * np.sum((theta[..., 3:] - 0.4) ** 2, axis=-1)


def saturated(theta):
    return np.tanh(np.sum(theta, axis=-1)) - 0.1 * np.sum(theta**2, axis=-1)


def waves(theta):
    bowl = -0.3 * np.sum((theta - 0.7) ** 2, axis=-1)
    return bowl + 0.3 * np.sum(np.cos(4 * (theta - 0.7)) - 1, axis=-1)


def ellipsoid(theta):
    weights = np.logspace(0, 2, theta.shape[-1]) / 10
    return -np.sum(weights * (theta - 0.5) ** 2, axis=-1)


def narrow(theta):
    return expit(2 - 4 * np.sum(np.abs(theta - 0.6), axis=-1) / theta.shape[-1] ** 0.5)


def steps3(theta):
    return np.sum(np.floor(np.clip(2 - np.abs(theta - 0.5), 0, 2) * 1.5), axis=-1)


HELD_OUT = {
    "pid": Known(
        pid, {"params": {"p": (0.5, 20, "log"), "i": (0.1, 10, "log"), "d": (0, 5)}}, 0.05, -0.373
    ),
    "arm": Known(arm, {"dim": 6}, 0.3, 0.0),
    "saturated": Known(saturated, {"dim": 3}, 0.3, 0.839),
    "waves": Known(waves, {"dim": 2}, 0.2, 0.0),
    "ellipsoid 10": Known(ellipsoid, {"dim": 10}, 1.0, 0.0),
    "cusp 5": Known(cusp, {"dim": 5}, 0.3, 0.0),
    "steps 3": Known(steps3, {"dim": 3}, 0.5, 9.0),
    "success 5": Known(narrow, {"dim": 5}, "success", float(expit(2.0))),
    "smooth 30": Known(wide, {"dim": 30}, 1.0, 10.0),
    "sphere 5, no noise": Known(sphere, {"dim": 5}, 0.0, 0.0),
    "flat": Known(lambda theta: 0.0 * theta[..., 0], {"dim": 3}, 1.0, 0.0),
    "near the top": Known(ellipse, {"dim": 4, "mean": [1, -0.5, 0.3, 0.8], "std": 0.5}, 1.0, 0.0),
    "heavy peaked": Known(peaked, {"dim": 2}, "heavy", 0.0),
}


def held_up(theta):
    """Minus the cost of holding a pendulum up by two gains, from three pushes."""
    p, d = (np.asarray(x, float) for x in np.moveaxis(theta, -1, 0))
    cost = np.zeros_like(p)
    for push in (0.3, -0.6, 0.9):
        angle, speed = push + np.zeros_like(p), np.zeros_like(p)
        for _ in range(60):
            torque = np.clip(-p * angle - d * speed, -12, 12)
            speed = np.clip(speed + 0.05 * (6 * np.sin(angle) + torque), -20, 20)
            angle = np.clip(angle + 0.05 * speed, -3, 3)
            cost = cost + 0.02 * (angle**2 + 0.001 * torque**2)
    return -cost


def thrown(theta):
    """Minus how far from 8 m a ball lands, thrown with an angle, a speed and a height."""
    angle, speed, height = np.moveaxis(theta, -1, 0)
    up, along = speed * np.sin(angle), speed * np.cos(angle)
    time = (up + np.sqrt(up**2 + 19.6 * height)) / 9.8
    return -np.abs(along * time - 8) - 0.02 * speed


def correlated(theta):
    turned = theta @ np.linalg.qr(np.cos(np.arange(49.0).reshape(7, 7)))[0]
    return -np.sum(np.linspace(0.1, 2, 7) * (turned - 0.4) ** 2, axis=-1)


def bump(theta):
    return 5 * np.exp(-np.sum((theta - 0.7) ** 2, axis=-1))


def humps(theta):
    one = np.exp(-np.sum((theta - [1.2, 0.2]) ** 2, axis=-1))
    return 2 * one + 1.4 * np.exp(-np.sum((theta - [-1.0, -0.4]) ** 2, axis=-1))


def grasp(theta):
    return expit(2.5 - 3 * np.sum(np.abs(theta - [0.2, 0.6, -0.3]), axis=-1))


def counts(theta):
    n, rate = np.moveaxis(theta, -1, 0)
    return -((np.round(n) - 7) ** 2) / 4 - 3 * (np.log10(rate) + 2) ** 2


def uphill(theta):
    return np.sum(theta * [1, 2, 0.5, 1.5], axis=-1)


def valley(theta):
    x, y = theta[..., 0] - 0.6, theta[..., 1] + 0.4
    return -3 * np.abs(x + y) - 0.3 * (x - y) ** 2


def weak(theta):
    return -np.sum(np.r_[2.0, 1.0, np.full(10, 0.02)] * (theta - 0.5) ** 2, axis=-1)


def ackley(theta):
    far = np.sqrt(np.mean((theta - 0.5) ** 2, axis=-1))
    waves = np.mean(np.cos(2 * np.pi * (theta - 0.5)), axis=-1)
    return 5 * np.exp(-0.4 * far) + 0.5 * np.exp(waves) - 5 - 0.5 * np.e


def skewed(theta):
    x = theta - 0.3
    return -np.sum(np.exp(0.8 * x) - 0.8 * x - 1, axis=-1)


BOX = dict.fromkeys("abcd", (0, 1))
FRESH = {
    "held up": Known(
        held_up, {"params": {"p": (2, 60, "log"), "d": (0.1, 20, "log")}}, 0.05, -0.134
    ),
    "thrown": Known(
        thrown, {"params": {"angle": (0.1, 1.4), "speed": (3, 15), "height": (0.5, 2)}}, 0.3, -0.158
    ),
    "correlated 7": Known(correlated, {"dim": 7}, 0.5, 0.0),
    "bump 4": Known(bump, {"dim": 4}, 0.3, 5.0),
    "two humps": Known(humps, {"dim": 2}, 0.3, 2.01),
    "grasp": Known(grasp, {"dim": 3}, "success", float(expit(2.5))),
    "counts": Known(
        counts, {"params": {"n": (1, 20, "int"), "rate": (1e-4, 1.0, "log")}}, 0.5, 0.0
    ),
    "uphill in a box": Known(uphill, {"params": BOX}, 0.3, 5.0),
    "valley": Known(valley, {"dim": 2}, 0.3, 0.0),
    "weak 12": Known(weak, {"dim": 12}, 0.5, 0.0),
    "ackley 3": Known(ackley, {"dim": 3}, 0.2, 0.0),
    "skewed 5": Known(skewed, {"dim": 5}, 0.3, 0.0),
    "far start": Known(sphere, {"dim": 6, "mean": [3.0] * 6}, 1.0, 0.0),
    "heavy arm": Known(arm, {"dim": 6, "mean": [0.5] * 6, "std": 0.5}, "heavy", 0.0),
}


def rosenbrock(theta):
    x = theta / 2 + 0.5
    return -np.sum(2 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + 0.3 * (1 - x[..., :-1]) ** 2, axis=-1)


def saturating(theta):
    return 10 * np.tanh(np.mean(theta, axis=-1)) - np.mean((theta - 0.8) ** 2, axis=-1)


def chained(theta):
    return -np.sum(np.abs(np.diff(theta, axis=-1) - 0.2), axis=-1) - theta[..., 0] ** 2


WIDE = {
    "rosenbrock 16": Known(rosenbrock, {"dim": 16}, 1.0, 0.0),
    "correlated box 20": Known(
        lambda theta: -8 * np.sum((np.cumsum(theta - 0.4, axis=-1) / 4) ** 2, axis=-1),
        {"params": {f"g{i}": (0, 1) for i in range(20)}},
        0.2,
        0.0,
    ),
    "saturating 25": Known(saturating, {"dim": 25}, 0.5, 8.58),
    "chained 18": Known(chained, {"dim": 18}, 0.5, 0.0),
    "far 40": Known(lambda x: -np.sqrt(np.sum((x - 1) ** 2, axis=-1)), {"dim": 40}, 0.2, 0.0),
}


def gains(theta):
    kp, kd = np.moveaxis(theta, -1, 0)
    return -np.abs(kp - 60) / 20 - (kd - 0.7) ** 2


def kinked_ridge(theta):
    x, y = theta[..., 0] - 0.7, theta[..., 1] + 0.4
    return -np.abs(x + y) - 0.2 * (x - y) ** 2


def rippled(theta):
    far = theta - 0.6
    return -np.sum(far**2 + 0.05 * (1 - np.cos(12 * far)), axis=-1)


def settled(theta):
    """A mass that is pushed to 1 by a spring and a damper for two seconds: its absolute error."""
    kp, kd = np.moveaxis(theta, -1, 0)
    x, v, missed = np.zeros_like(kp), np.zeros_like(kp), np.zeros_like(kp)
    for _ in range(100):
        v = v + 0.02 * (np.clip(kp * (1 - x), -15, 15) - kd * v)
        x = x + 0.02 * v
        missed = missed + 0.02 * np.abs(1 - x)
    return -missed


def worst_of(theta):
    return -np.max(np.abs(theta - np.linspace(-0.5, 1.0, theta.shape[-1])), axis=-1)


def log_cusp(theta):
    return -np.log1p(3 * np.sqrt(np.sum((theta - 0.8) ** 2, axis=-1)))


KP_KD = {"kp": (1, 200, "log"), "kd": (0, 5)}
SPRING = {"kp": (1, 200, "log"), "kd": (0.1, 30, "log")}
STILL = {
    "still gains": Known(gains, {"params": KP_KD}, 0.0, 0.0),
    "still cusp 3": Known(cusp, {"dim": 3}, 0.0, 0.0),
    "still sphere 5": Known(sphere, {"dim": 5}, 0.0, 0.0),
    "still banana": Known(banana, {"dim": 2}, 0.0, 0.0),
    "still robot": Known(robot, {"params": GAINS}, 0.0, 0.0),
    "still stairs": Known(stairs, {"dim": 2}, 0.0, 2.5),
    "still cusp 8": Known(cusp, {"dim": 8}, 0.0, 0.0),
    "kinked ridge": Known(kinked_ridge, {"dim": 2}, 0.0, 0.0),
    "rippled 4": Known(rippled, {"dim": 4}, 0.0, 0.0),
    "settled": Known(settled, {"params": SPRING}, 0.0, -0.34),
    "worst of 6": Known(worst_of, {"dim": 6}, 0.0, 0.0),
    "log cusp 3": Known(log_cusp, {"dim": 3}, 0.0, 0.0),
    "still peaked": Known(peaked, {"dim": 3}, 0.0, 0.0),
    "still smooth 12": Known(wide, {"dim": 12}, 0.0, 10.0),
}
