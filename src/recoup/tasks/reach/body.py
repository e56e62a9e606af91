"""The upper body in MuJoCo: `upper_body.xml` with the joints that a task does not use left out."""

import os
import sys
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import not_installed

JOINTS = {  # in the order of states and actions
    2: ("r_sh_pitch", "r_el_pitch"),
    4: ("waist_yaw", "r_sh_pitch", "r_sh_roll", "r_el_pitch"),
    9: (
        "waist_yaw",
        "torso_roll",
        "torso_pitch",
        "r_sh_pitch",
        "r_sh_roll",
        "r_el_pitch",
        "l_sh_pitch",
        "l_sh_roll",
        "l_el_pitch",
    ),
}
ZERO_DEGREES = {"r_sh_pitch": 90.0, "l_sh_pitch": 90.0}  # origin of state and action: arms forward
SUBSTEPS = 10  # of physics in a control step of 0.1 s


class Servos(NamedTuple):
    """The joints' servos, each `[n]`, as they stand in the compiled model; angles in rad."""

    zero: np.ndarray  # q_zero, from arms hanging
    low: np.ndarray
    high: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    limit: np.ndarray  # N m


def compile_body(joints: int, target: tuple[float, float, float]) -> Any:
    """The compiled `mujoco.MjModel` with 2, 4 or 9 joints, the others welded."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec.from_string((files(__package__) / "upper_body.xml").read_text())
    for element in (*spec.actuators, *spec.joints):
        if element.name not in JOINTS[joints]:
            spec.delete(element)
    spec.body("target").pos = target
    model = spec.compile()
    order = [model.joint(i).name for i in range(model.njnt)]
    driven = [model.joint(int(i)).name for i in model.actuator_trnid[:, 0]]
    assert order == driven == list(JOINTS[joints]), "actuators out of the joints' order"
    return model


def servos_of(model: Any) -> Servos:
    """The servos of a compiled body."""
    names = [model.joint(i).name for i in range(model.njnt)]
    return Servos(
        zero=np.radians([ZERO_DEGREES.get(name, 0.0) for name in names]),
        low=model.jnt_range[:, 0].copy(),
        high=model.jnt_range[:, 1].copy(),
        kp=model.actuator_gainprm[:, 0].copy(),
        kd=-model.actuator_biasprm[:, 2],
        limit=model.actuator_forcerange[:, 1].copy(),
    )


@cache
def import_mujoco() -> Any:
    """MuJoCo, or one sentence that says how to get it; without a display it renders through EGL.

    MuJoCo reads `MUJOCO_GL` when it is imported, and fails there if that library is missing: it is
    then imported without rendering, since physics needs none.
    """
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
    try:
        return import_module("mujoco.batch").mujoco
    except ModuleNotFoundError:
        raise not_installed("the reaching tasks need MuJoCo 4", "mujoco") from None
    except (AttributeError, ImportError, OSError, RuntimeError):
        os.environ["MUJOCO_GL"] = "disabled"
        for name in [name for name in sys.modules if name.split(".")[0] == "mujoco"]:
            del sys.modules[name]
        return import_module("mujoco.batch").mujoco
