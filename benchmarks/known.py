"""Tasks whose expected return is known, for holding what a study says to the truth.

Intervals and forecasts were made with `MADE_WITH`; `HELD_OUT` was then looked at once, and one
number (by how much a gain in doubt is shrunk) chosen anew with both; `FRESH` only afterwards.
`WIDE`, of many parameters, only after intervals had been widened in many dimensions. `STILL` has no
noise, as a simulator without a random number: the rough kernel was made with its first half. `LAST`
was looked at once; by how much a gain is shrunk was then chosen anew with all of these in sight.
`DRAWN`, tasks made of random numbers, only afterwards.
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


def furnace(theta):
    """Minus the mean absolute error of a heated mass under two gains; the heat arrives late."""
    p, i = (np.asarray(x, float) for x in np.moveaxis(theta, -1, 0))
    heat, warm, summed, missed = np.zeros((8, *p.shape)), 0 * p, 0 * p, 0 * p
    for step in range(160):
        error = 1 - warm
        summed = summed + 0.1 * error
        warm = warm + 0.1 * (heat[step % 8] - 0.5 * warm)
        heat[step % 8] = np.clip(p * error + i * summed, 0, 3)
        missed = missed + np.abs(error) / 160
    return -missed


def hover(theta):
    """Minus the squared error of a drone in height, in a wind that turns, under three gains."""
    p, i, d = (np.asarray(x, float) for x in np.moveaxis(theta, -1, 0))
    x, v, summed, cost = 1 + 0 * p, 0 * p, 0 * p, 0 * p
    for step in range(150):
        summed = np.clip(summed - 0.04 * x, -5, 5)
        force = np.clip(-p * x - d * v + i * summed, -9, 9)
        v = np.clip(v + 0.04 * (force + (1.5 if step > 60 else -1.0) - 0.3 * v), -20, 20)
        x = np.clip(x + 0.04 * v, -10, 10)
        cost = cost + 0.04 * (x**2 + 0.003 * force**2)
    return -cost


def branin(theta):
    x, y = theta[..., 0], theta[..., 1]
    bent = y - 5.1 * x**2 / (4 * np.pi**2) + 5 * x / np.pi - 6
    return -(bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10) / 10


HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(theta):
    far = np.sum(HARTMANN_A * (theta[..., None, :] - HARTMANN_P) ** 2, axis=-1)
    return np.exp(-far) @ np.array([1.0, 1.2, 3.0, 3.2])


def michalewicz(theta):
    i = np.arange(1, theta.shape[-1] + 1)
    return np.sum(np.sin(theta) * np.sin(i * theta**2 / np.pi) ** 8, axis=-1)


def styblinski(theta):
    return -np.sum(theta**4 - 16 * theta**2 + 5 * theta, axis=-1) / 20


def levy(theta):
    w = 1 + (theta - 1.5) / 4
    inner = (w[..., :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[..., :-1] + 1) ** 2)
    ends = np.sin(np.pi * w[..., 0]) ** 2 + (w[..., -1] - 1) ** 2
    return -2 * (np.sum(inner, axis=-1) + ends)


def trained(theta):
    """What a network scores by its rate, decay, momentum and layers; rates too high diverge."""
    rate, decay, momentum, layers = np.moveaxis(theta, -1, 0)
    high = np.logaddexp(0.0, 6 * (np.log10(rate) + 2))
    score = -0.4 * (np.log10(rate) + 2.7) ** 2 - 0.05 * (np.log10(decay) + 4) ** 2
    return score - 4 * (momentum - 0.9) ** 2 - 0.06 * (np.round(layers) - 5) ** 2 - 0.5 * high


def docked(theta):
    """How likely a peg goes in: four numbers, each of which must be right."""
    off = np.abs(theta - [0.3, 0.62, 0.45, 0.7]) / [0.3, 0.35, 0.4, 0.3]
    return 0.9 * np.prod(expit(8 * (1 - off)), axis=-1)


def corner(theta):
    return np.sum([2.0, 1.0, 1.5] * theta, axis=-1) - 0.5 * np.prod(theta, axis=-1)


def griewank(theta):
    far = theta - 1.0
    i = np.sqrt(np.arange(1, theta.shape[-1] + 1))
    return -0.4 * np.sum(far**2, axis=-1) + np.prod(np.cos(3 * far / i), axis=-1) - 1


def trid(theta):
    joined = np.sum(theta[..., 1:] * theta[..., :-1], axis=-1)
    return -np.sum((theta - 1) ** 2, axis=-1) + 0.8 * joined


def cone(theta):
    return -3 * np.sqrt(0.1 + np.sum((theta - 0.4) ** 2, axis=-1))


def huber(theta):
    far = np.abs(theta - np.linspace(1.5, -0.5, theta.shape[-1]))
    return -np.sum(np.where(far < 0.5, far**2, far - 0.25), axis=-1)


def gaits(theta):
    """Speed of a walker by frequency, swing, phase, lean and stiffness: the gait must fit."""
    f, swing, phase, lean, k = np.moveaxis(theta, -1, 0)
    fits = np.exp(-(((f - 1.8 / np.sqrt(0.4 + swing)) / 0.5) ** 2)) * np.exp(np.cos(phase - 1.0))
    return fits * swing - (lean - 0.1) ** 2 - 0.1 * np.log(k / 300) ** 2


def tilted(theta):
    return np.exp(-0.5 * np.sum((theta - 1.2) ** 2, axis=-1)) * 6 - np.abs(theta[..., 0] - 1)


def boxed(dim, low, high):
    return {"params": {f"x{i}": (low, high) for i in range(dim)}}


LAST = {
    "furnace": Known(
        furnace, {"params": {"p": (0.1, 20, "log"), "i": (0.01, 5, "log")}}, 0.05, -0.109
    ),
    "hover": Known(
        hover, {"params": {"p": (1, 60, "log"), "i": (0, 20), "d": (0.2, 20, "log")}}, 0.2, -0.342
    ),
    "branin": Known(branin, {"params": {"x": (-5, 10), "y": (0, 15)}}, 1.0, -0.0398),
    "hartmann 6": Known(hartmann, boxed(6, 0, 1), 0.2, 3.322),
    "michalewicz 4": Known(michalewicz, boxed(4, 0, 3.14), 0.2, 3.707),
    "styblinski 3": Known(styblinski, boxed(3, -5, 5), 1.0, 11.75),
    "levy 5": Known(levy, {"dim": 5}, 0.5, 0.0),
    "trained": Known(
        trained,
        {
            "params": {
                "rate": (1e-5, 1.0, "log"),
                "decay": (1e-7, 0.1, "log"),
                "momentum": (0.5, 0.99),
                "layers": (1, 12, "int"),
            }
        },
        0.2,
        -0.0065,
    ),
    "docked": Known(docked, boxed(4, 0, 1), "success", 0.9 * float(expit(8.0)) ** 4),
    "corner": Known(corner, boxed(3, 0, 1), 0.3, 4.0),
    "griewank 8": Known(griewank, {"dim": 8}, 0.5, 0.0),
    "trid 9": Known(trid, {"dim": 9}, 1.5, 26.029),
    "cone 12": Known(cone, {"dim": 12}, 0.5, -3 * 0.1**0.5),
    "huber 6": Known(huber, {"dim": 6}, "heavy", 0.0),
    "gaits": Known(
        gaits,
        {
            "params": {
                "f": (0.5, 4),
                "swing": (0, 1),
                "phase": (-2, 4),
                "lean": (-0.5, 0.5),
                "k": (30, 3000, "log"),
            }
        },
        0.2,
        np.e,
    ),
    "tilted 3": Known(tilted, {"dim": 3, "std": 0.5}, 0.3, 5.884),
}


SHAPES = {
    "bowl": lambda far: -np.sum(far**2, axis=-1),
    "cusp": lambda far: -np.sum(np.abs(far), axis=-1),
    "power": lambda far: -np.sum(np.abs(far) ** 1.5, axis=-1),
    "cone": lambda far: -np.sqrt(0.02 + np.sum(far**2, axis=-1)),
    "log": lambda far: -np.log1p(np.sum(far**2, axis=-1)),
    "bump": lambda far: np.exp(-0.5 * np.sum(far**2, axis=-1)),
    "ripples": lambda far: -np.sum(far**2 + 0.2 * (1 - np.cos(5 * far)), axis=-1),
    "steep": lambda far: -np.sum(np.expm1(np.clip(far, -9, 9)) - far, axis=-1),
    "success": lambda far: 0.9 * expit(3 - np.sum(np.abs(far), axis=-1)),
}


def drawn(number: int) -> tuple[str, Known]:
    """A task of random numbers: shape, parameters, box or none, where it is best, turned or not,
    how much longer one axis is than another, how much noise beside what a start's draws vary."""
    rng = np.random.default_rng([number, 2026])
    shape = list(SHAPES)[number % len(SHAPES)]
    dim, boxed_in = int(rng.integers(2, 11)), bool(rng.random() < 0.5)
    best = rng.uniform(0.1, 0.9, dim) if boxed_in else rng.normal(0, 0.8, dim)
    axes = np.exp(rng.uniform(0, 1.5, dim)) * (3 if boxed_in else 0.7) / dim**0.25
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0] if rng.random() < 0.5 else np.eye(dim)

    def value(theta):
        return SHAPES[shape](((np.asarray(theta) - best) @ turn) * axes)

    begun = rng.uniform(0, 1, (4000, dim)) if boxed_in else rng.normal(size=(4000, dim))
    noise = float(np.exp(rng.uniform(np.log(0.05), np.log(1.5))) * np.std(value(begun)))
    settings = boxed(dim, 0, 1) if boxed_in else {"dim": dim}
    name = f"{shape} {number}, {dim}{' boxed' if boxed_in else ''}"
    return name, Known(value, settings, "success" if shape == "success" else noise, value(best))


DRAWN = dict(drawn(number) for number in range(36))
