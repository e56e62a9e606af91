"""Environments, functions and policies such as users bring; importable by worker processes."""

import os
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """A point that is pushed towards 3; ends when it passes 5."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, noise=0.1, render_mode=None):
        self.observation_space = spaces.Box(-10, 10, (2,))
        self.action_space = spaces.Box(-1, 1, (1,))
        self.noise, self.render_mode = noise, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = float(self.np_random.normal()), 0
        return self._seen(), {}

    def step(self, action):
        self.x += float(action[0]) + self.noise * float(self.np_random.normal())
        self.t += 1
        return self._seen(), -abs(self.x - 3), self.x > 5, False, {}

    def render(self):
        return np.full((8, 10, 3), int(10 * abs(self.x)) % 255, np.uint8)

    def _seen(self):
        return np.array([self.x, self.t / 10])


class Odd(gymnasium.Env):
    """Observes a dictionary, acts with several choices."""

    def __init__(self, actions=None):
        self.observation_space = spaces.Dict(
            {"at": spaces.Discrete(3), "pair": spaces.Tuple([spaces.Box(-1, 1, (2,))])}
        )
        self.action_space = actions or spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 4
        return self._seen(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.left -= 1
        return self._seen(), float(np.sum(action)), self.left == 0, False, {}

    def _seen(self):
        draw = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return {"at": int(self.np_random.integers(3)), "pair": (draw,)}


class Big(Walk):
    """Observes numbers that are hundreds large."""

    def _seen(self):
        return np.array([500 + 100 * self.x, self.t])


class Recurrent:
    """A policy that remembers what it saw last."""

    parameters = 3

    def start(self):
        return 0.0

    def act(self, theta, observation, state):
        action = np.clip(theta[0] * observation[0] + theta[1] * state + theta[2], -1, 1)
        return np.array([action], np.float32), float(observation[0])


def make_walk(**options):
    return Walk(**options)


def quadratic(theta, seed):
    """The best theta is (1, -2)."""
    noise = 0.1 * np.random.default_rng(seed).normal()
    return -float((theta[0] - 1) ** 2 + (theta[1] + 2) ** 2) + noise


def loaded(theta, seed):
    """A return that a load shifts, and the load, which is known before."""
    load = np.random.default_rng(seed).normal()
    return 3 * load - float(np.sum(np.square(theta))), {"load": load}


def misnamed(theta, seed):
    return 1.0, {"no name": seed}


def robot(stiffness, damping):
    return -((np.log(stiffness) - 4) ** 2) - (damping - 0.3) ** 2


def grips(gain, gripper, fingers):
    return {"soft": 0.0, "hard": 3.0}[gripper] - abs(gain - 5) - abs(fingers - 3)


LOOSE = "RECOUP_TESTS_SENSOR_IS_LOOSE"


def sensed(theta):
    if LOOSE in os.environ and theta[0] > 0.5:
        raise OSError("the sensor was loose")
    return -float(theta @ theta)


def prints(theta):
    print("a line on standard output")
    os.write(1, b"another, unbuffered\n")
    return -float(theta @ theta)


def forks(theta):
    """Starts a child that outlives the call, and is not waited for."""
    child = os.fork()
    if child == 0:
        time.sleep(6000)
        os._exit(0)
    Path(f"child-{child}").touch()
    return -float(theta @ theta)


class Forking(Walk):
    """Forks with every step, and parent and child come back from it."""

    def step(self, action):
        os.fork()
        return super().step(action)


class Leaving(Walk):
    """Has a child with every step that ends by `sys.exit`, and looks how it has ended."""

    def step(self, action):
        child = os.fork()
        if child == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        return super().step(action)


def forks_while_built(**options):
    os.fork()
    return Walk(**options)


class Wordless(Exception):
    """One that cannot be put into words."""

    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class Unusual(BaseException):
    """No `Exception`, as those that others leave their loops with."""


class Raises(Walk):
    """Raises what it was given, in the first step of every third episode."""

    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    def reset(self, *, seed=None, options=None):
        self.bad = seed % 3 == 0
        return super().reset(seed=seed)

    def step(self, action):
        if self.bad:
            raise self.wrong
        return super().step(action)


class Unclosable(Walk):
    """Raises when it is closed."""

    def close(self):
        raise Unusual("the lid is stuck")


def not_a_number(theta, seed):
    return float("nan") if seed % 2 else -float(theta @ theta)


def broken(theta):
    raise RuntimeError("the motor does not answer")


def flaky(theta, seed):
    """Fails the first time that it is called with a seed."""
    seen = Path(f"seen-{seed}")
    if not seen.exists():
        seen.touch()
        raise ConnectionError("lost the line")
    return -float(theta @ theta)


def hangs(theta, seed):
    """The first call hangs."""
    if not Path("hung").exists():
        Path("hung").touch()
        time.sleep(6000)
    return -float(theta @ theta)


def dies(theta, seed):
    """The first call kills its process."""
    if not Path("dead").exists():
        Path("dead").touch()
        os.kill(os.getpid(), 9)
    return -float(theta @ theta)


def slow(theta, seed):
    time.sleep(0.02)
    return -float(theta @ theta)


def held(theta, seed):
    """As `slow`, but the twentieth call and those after it wait for a file `go`."""
    Path(f"seen-{seed}").touch()
    while len(list(Path().glob("seen-*"))) >= 20 and not Path("go").exists():
        time.sleep(0.1)
    return slow(theta, seed)


def slow_first(theta, seed):
    """Some take much longer than others."""
    time.sleep(0.4 if seed % 5 == 0 else 0.01)
    return -float(theta @ theta)


class Wanders(Walk):
    """Changes the directory of its process, to `away`, whenever an episode begins."""

    def __init__(self, **options):
        assert Path("model.xml").exists(), "made in another directory than the program was started"
        super().__init__(**options)
        self._away = Path("away").resolve()

    def reset(self, **how):
        os.chdir(self._away)
        return super().reset(**how)


class Strays(Walk):
    """Changes the directory of its process as soon as it is made."""

    def __init__(self, **options):
        super().__init__(**options)
        if Path("away").exists():
            os.chdir("away")


class LostOnTheWay(Strays):
    """Goes away and then breaks."""

    def step(self, action):
        raise RuntimeError("the motor does not answer")


class Glider(gymnasium.Env):
    """Pushed to the middle in a plane; observes a dictionary whose keys are not sorted."""

    ORDER = ("pos", "vel", "att")
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, order=ORDER, render_mode=None):
        parts = {"pos": (2, 10.0), "vel": (2, 5.0), "att": (1, 1.0)}
        boxes = {key: spaces.Box(-far, far, (size,)) for key, (size, far) in parts.items()}
        self.observation_space = spaces.Dict(**{key: boxes[key] for key in order})
        self.action_space, self.render_mode = spaces.Box(-1, 1, (2,)), render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v, self.t = self.np_random.normal(size=2), np.zeros(2), 0
        return self._seen(), {}

    def step(self, action):
        self.v = 0.9 * self.v + 0.5 * np.asarray(action, float)
        self.x, self.t = self.x + 0.3 * self.v, self.t + 1
        return self._seen(), 1 - float(np.abs(self.x).sum()), False, False, {}

    def render(self):
        return np.full((8, 10, 3), int(10 * abs(self.x[0])) % 255, np.uint8)

    def _seen(self):
        parts = {"pos": self.x, "vel": self.v, "att": [np.sin(self.t)]}
        return {key: np.asarray(part, np.float32) for key, part in parts.items()}


def sorted_glider(render_mode=None):
    return Glider(sorted(Glider.ORDER), render_mode)


class Steers:
    """A policy of one's own for the glider, whose numbers a gain multiplies."""

    parameters = 5

    def __init__(self, gain=1.0):
        self.gain = gain

    def act(self, theta, observation):
        pushes = theta[:2] * observation["pos"] + theta[2:4] * observation["vel"] + theta[4]
        return np.tanh(self.gain * pushes).astype(np.float32)
