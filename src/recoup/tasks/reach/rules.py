"""The reaching task around the physics: what is seen, commanded, paid for. In JAX and NumPy.

Arrays are of n joints with any leading axes; angles in rad, from arms hanging.
"""

from typing import Any, NamedTuple

import numpy as np

from recoup.checks import (
    InputError,
    check_between,
    check_choice,
    check_finite,
    check_flag,
    check_shape,
    shortly,
)
from recoup.core.types import Array, Namespace
from recoup.tasks.reach.body import JOINTS, Servos

NEAR, FAR = (0.603, -0.203, 1.237), (0.637, 0.015, 1.237)
TARGETS = {2: NEAR, 4: FAR, 9: FAR}
SCALES = {"scaled": (0.4, 0.1), "raw": (1.0, 1.0)}  # of angles and angular velocities
COSTS = ("torque", "angle")
MOST = float(np.finfo(np.float64).max)


class Reach(NamedTuple):
    """The task's options, resolved; those of the paper where it states them."""

    joints: int
    target: tuple[float, float, float]
    features: str  # "scaled" to order one, or "raw": rad and rad/s as they are
    cost: str  # "torque": (N m)^2 of the servos; or "angle": deg^2 of angle minus command
    bias: bool  # a feature that is always 1
    noise: float  # rad, standard deviation, on every commanded angle
    k1: float
    k2: float

    @property
    def size(self) -> int:
        """F, the number of features."""
        return 2 * self.joints + self.bias


def reach(
    joints: int = 2,
    target: Any = None,
    features: str = "scaled",
    cost: str = "torque",
    bias: bool = False,
    noise: float = 0.02,
    k1: float = 1.0,
    k2: float = 0.0005,
) -> Reach:
    """The task with 2, 4 or 9 joints, every option checked; a target of None is the paper's."""
    if not isinstance(joints, (int, np.integer)) or joints not in JOINTS:
        raise InputError(
            f"joints must be one of {', '.join(map(str, JOINTS))}; got {shortly(joints)}."
        )
    where = TARGETS[joints] if target is None else target
    check_shape("target", where, "[x, y, z]", (3,))
    check_finite("target", where)
    x, y, z = (float(number) for number in where)
    return Reach(
        joints=joints,
        target=(x, y, z),
        features=check_choice("features", features, SCALES),
        cost=check_choice("cost", cost, COSTS),
        bias=check_flag("bias", bias),
        noise=check_between("noise", noise, 0.0, MOST),
        k1=check_between("k1", k1, 0.0, MOST),
        k2=check_between("k2", k2, 0.0, MOST),
    )


def features(xp: Namespace, task: Reach, servos: Servos, q: Array, qdot: Array) -> Array:
    """What the policy sees, `[..., F]`: angles from q_zero, then angular velocities.

    Implements: zhao2013 S4.3 phi(s) = s. Differs: scaled to order one, [0.4 (q - q_zero), 0.1
    qdot], unless `features="raw"`; the paper gives no units.
    """
    angle, velocity = SCALES[task.features]
    seen = [angle * (q - servos.zero), velocity * qdot]
    if task.bias:
        seen.append(xp.ones_like(q[..., :1]))
    return xp.concatenate(seen, axis=-1)


def command(xp: Namespace, servos: Servos, action: Array, noise: Array) -> Array:
    """The angles `[..., n]` that the servos are sent: action plus noise, held to the ranges."""
    return xp.clip(action + servos.zero + noise, servos.low, servos.high)


def control_cost(
    xp: Namespace, task: Reach, servos: Servos, q: Array, qdot: Array, sent: Array
) -> Array:
    """What the controls cost at the decision, `[...]`.

    Implements: zhao2013 S4.3 c_t, the sum over joints: of squared servo torques in (N m)^2, or of
    squared angles to go in deg^2; the paper does not say which.
    """
    if task.cost == "angle":
        return xp.sum(xp.degrees(q - sent) ** 2, axis=-1)
    torque = xp.clip(servos.kp * (sent - q) - servos.kd * qdot, -servos.limit, servos.limit)
    return xp.sum(torque**2, axis=-1)


def reward(xp: Namespace, task: Reach, distance: Array, cost: Array) -> Array:
    """The immediate reward, `[...]`, with the distance after the step.

    Implements: zhao2013 S4.3 r_t = k_1 exp(-10 d_t) - k_2 min(c_t, 10000).
    """
    return task.k1 * xp.exp(-10 * distance) - task.k2 * xp.minimum(cost, 10000.0)
