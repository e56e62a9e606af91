"""Planar arms of two and three links under PD control, their torques limited and sampled."""

import numpy as np

from recoup.tasks.bounded.simulated import Knob, Machine

ARM_STEPS, ARM_STEP = 40, 0.025
LENGTHS, MASSES, LIMITS = (0.4, 0.35, 0.3), (1.2, 0.9, 0.8), (40.0, 20.0, 8.0)
FRICTION, ROTOR = 0.3, 0.15  # of a joint; the inertia of its motor behind the gears
EFFORT, SPEED = 2e-4, 0.01  # prices of squared torques and velocities beside squared errors


def arm(joints: int, best: tuple[float, ...]) -> Machine:
    """An arm that moves to random angles; `best` are its proportional, then derivative gains."""
    names = [f"{kind}{i + 1}" for kind in ("kp", "kd") for i in range(joints)]
    knobs = tuple(Knob(name, value, 60.0) for name, value in zip(names, best, strict=True))
    return Machine(knobs, 2 * joints, lambda gains, noise: arm_returns(joints, gains, noise))


def arm_returns(joints: int, gains: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns `[n]`: 10 minus squared errors and prices of torque and speed, over 1 s at 40 Hz.

    Point masses at the ends of links, no gravity; angles are absolute, so that the inertia is
    m_ij l_i l_j cos(q_i - q_j) and velocities pull by m_ij l_i l_j sin(q_i - q_j) v_j^2, where m_ij
    is the mass from the further of both links on.
    """
    limit = np.array(LIMITS[:joints])
    kp, kd = gains[:, :joints], gains[:, joints:]
    beyond = np.cumsum(MASSES[:joints][::-1])[::-1]
    further = np.maximum.outer(np.arange(joints), np.arange(joints))
    coupling = beyond[further] * np.multiply.outer(LENGTHS[:joints], LENGTHS[:joints])
    q, target = 0.2 * noise[:, :joints], 0.8 + 0.2 * noise[:, joints:]
    v, paid = np.zeros_like(q), np.zeros(len(gains))
    apart_from = np.eye(joints) - np.eye(joints, k=-1)  # angles of joints from absolute ones
    rotors = ROTOR * apart_from.T @ apart_from
    for _ in range(ARM_STEPS):
        turning = v @ apart_from.T
        torque = np.clip(kp * ((target - q) @ apart_from.T) - kd * turning, -limit, limit)
        between = q[:, :, None] - q[:, None, :]
        force = (torque - FRICTION * turning) @ apart_from
        force -= np.sum(coupling * np.sin(between) * v[:, None] ** 2, 2)
        v = (
            v
            + ARM_STEP
            * np.linalg.solve(coupling * np.cos(between) + rotors, force[..., None])[..., 0]
        )
        v = np.clip(v, -50.0, 50.0)
        q = q + ARM_STEP * v
        paid += np.sum((target - q) ** 2 + EFFORT * torque**2 + SPEED * turning**2, 1)
    return 10 * (1 - paid / ARM_STEPS)
