"""The reaching task as a Gymnasium environment: one body, with pictures."""

import time
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from recoup.checks import InputError, check_between, check_choice, check_finite, check_shape
from recoup.core.types import Array, Plain
from recoup.tasks.reach import rules
from recoup.tasks.reach.batch_engine import engine_of
from recoup.tasks.reach.body import SUBSTEPS, import_mujoco

GL_PACKAGES = (
    "rendering needs OpenGL, which could not be set up here ({reason}): on Debian and Ubuntu, "
    "apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri, and set MUJOCO_GL=egl before MuJoCo is "
    "imported."
)


class ReachEnv(gymnasium.Env):
    """The upper body: observes the features, acts with target angles relative to q_zero.

    No episode terminates; the registered horizon truncates. Rewards are not discounted. `info` has
    the `distance` of the hand from the target and the control `cost`. Where MuJoCo warns that the
    motion has become unstable, the episode terminates, its reward is NaN and `info` has `failure`.
    """

    metadata: Plain = {  # noqa: RUF012
        "render_modes": ["rgb_array", "human"],
        "render_fps": 10,
    }

    def __init__(
        self,
        joints: int = 2,
        render_mode: str | None = None,
        width: int = 640,
        height: int = 480,
        **options: Any,
    ) -> None:
        if render_mode is not None:
            check_choice("render_mode", render_mode, self.metadata["render_modes"])
        self.task, self.render_mode = rules.reach(joints, **options), render_mode
        self.engine = engine_of(self.task)
        self.size = _picture_size(self.engine.model, height, width)
        self.data = import_mujoco().MjData(self.engine.model)
        infinity = float("inf")
        self.observation_space = spaces.Box(-infinity, infinity, (self.task.size,), np.float64)
        self.action_space = spaces.Box(-infinity, infinity, (joints,), np.float64)
        self._renderer: Any = None
        self._viewer: Any = None
        self._due = 0.0  # when the window may show the next step

    def reset(
        self, *, seed: int | None = None, options: Plain | None = None
    ) -> tuple[np.ndarray, Plain]:
        """Upright, at rest, the arms hanging."""
        super().reset(seed=seed)
        mujoco = import_mujoco()
        mujoco.mj_resetData(self.engine.model, self.data)
        mujoco.mj_forward(self.engine.model, self.data)
        self._show()
        return self._seen(), {"distance": self.distance}

    def step(self, action: Array) -> tuple[np.ndarray, float, bool, bool, Plain]:
        """A tenth of a second towards the commanded angles."""
        mujoco, model, data = import_mujoco(), self.engine.model, self.data
        check_shape("action", action, "[n]", (self.task.joints,))
        check_finite("action", action)
        action = np.asarray(action, np.float64)
        noise = self.task.noise * self.np_random.standard_normal(self.task.joints)
        data.ctrl[:] = rules.command(np, self.engine.servos, action, noise)
        cost = rules.control_cost(
            np, self.task, self.engine.servos, data.qpos, data.qvel, data.ctrl
        )
        mujoco.mj_step(model, data, nstep=SUBSTEPS)
        mujoco.mj_kinematics(model, data)
        info: Plain = {"distance": self.distance, "cost": cost}
        reward = float(rules.reward(np, self.task, self.distance, cost))
        failures = [kind for kind in range(len(data.warning)) if data.warning[kind].number]
        if failures:
            info["failure"] = f"MuJoCo warns of {mujoco.mjtWarning(failures[0]).name}"
            reward = float("nan")
        self._show()
        return self._seen(), reward, bool(failures), False, info

    @property
    def distance(self) -> float:
        """From the hand to the target, in m."""
        return float(np.linalg.norm(self.data.site_xpos[self.engine.hand] - self.task.target))

    def render(self) -> np.ndarray | None:
        """The picture `[height, width, 3]` of the camera `reach`."""
        if self.render_mode != "rgb_array":
            return None
        if self._renderer is None:
            self._renderer = _renderer(self.engine.model, *self.size)
        self._renderer.update_scene(self.data, "reach")
        return self._renderer.render()

    def close(self) -> None:
        """Frees the renderer, closes the window."""
        for window in (self._renderer, self._viewer):
            if window is not None:
                window.close()
        self._renderer = self._viewer = None

    def _seen(self) -> np.ndarray:
        return rules.features(np, self.task, self.engine.servos, self.data.qpos, self.data.qvel)

    def _show(self) -> None:
        """Keeps the window of the human mode up to date."""
        if self.render_mode != "human":
            return
        if self._viewer is None:
            self._viewer, self._due = _viewer(self.engine.model, self.data), time.monotonic()
        self._viewer.sync()
        self._due += 1 / self.metadata["render_fps"]
        time.sleep(max(0.0, self._due - time.monotonic()))


def _renderer(model: Any, height: int, width: int) -> Any:
    try:
        return import_mujoco().Renderer(model, height, width)
    except Exception as failure:  # each GL backend fails in its own way
        reason = str(failure).partition("\n")[0][:80] or type(failure).__name__
        raise InputError(GL_PACKAGES.format(reason=reason)) from None


def _picture_size(model: Any, height: int, width: int) -> tuple[int, int]:
    most = model.vis.global_
    check_between("height", height, 1, most.offheight)
    check_between("width", width, 1, most.offwidth)
    return int(height), int(width)


def _viewer(model: Any, data: Any) -> Any:
    """A window that looks through the camera `reach`."""
    import glfw
    from mujoco import viewer

    with warnings.catch_warnings():  # GLFW warns of what the sentence says
        warnings.simplefilter("ignore")
        if not glfw.init():  # MuJoCo's viewer would end the process
            raise InputError('there is no display for a window: use render_mode="rgb_array".')
    window = viewer.launch_passive(model, data, show_left_ui=False, show_right_ui=False)
    window.cam.type = import_mujoco().mjtCamera.mjCAMERA_FIXED
    window.cam.fixedcamid = model.camera("reach").id
    return window
