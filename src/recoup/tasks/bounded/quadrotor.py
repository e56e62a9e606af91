"""A planar quadrotor that holds its place in gusts; trials that fall or turn over have crashed."""

import numpy as np

from recoup.tasks.bounded.simulated import Knob, Machine

FLIGHT_STEPS, FLIGHT_STEP, EARTH_GRAVITY = 80, 0.04, 9.81
LAG = 0.35  # share of a wanted thrust or turn that motors reach in a step
TILT, TURNED, FALLEN = 0.5, 1.3, 2.0  # rad wanted at most, rad and m at which it has crashed
NAMES = ("height_kp", "height_kd", "place_kp", "place_kd", "tilt_kp", "tilt_kd")
FLOOR = -40.0


def quadrotor(best: tuple[float, ...]) -> Machine:
    """Its height, place and tilt each have a proportional and a derivative gain."""
    knobs = tuple(Knob(name, value, 40.0) for name, value in zip(NAMES, best, strict=True))
    return Machine(knobs, 4 + 2 * FLIGHT_STEPS, quadrotor_returns, FLOOR)


def quadrotor_returns(gains: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns `[n]`: minus squared distances and prices of tilt and lift; NaN: it has crashed."""
    height_kp, height_kd, place_kp, place_kd, tilt_kp, tilt_kd = gains.T
    x, z = 0.5 * noise[:, 0], 0.5 * np.tanh(noise[:, 1])
    tilt, spin = 0.2 * np.tanh(noise[:, 2]), 0.3 * noise[:, 3]
    vx, vz, lift, turn, paid = (np.zeros(len(gains)) for _ in range(5))
    crashed = np.zeros(len(gains), bool)
    for t in range(FLIGHT_STEPS):
        gust_x, gust_z = noise[:, 4 + 2 * t], noise[:, 5 + 2 * t]
        wanted = np.clip(-(place_kp * x + place_kd * vx), -TILT, TILT)
        lift += LAG * (np.clip(-height_kp * z - height_kd * vz, -6.0, 6.0) - lift)
        turn += LAG * (np.clip(tilt_kp * (wanted - tilt) - tilt_kd * spin, -60.0, 60.0) - turn)
        spin = spin + FLIGHT_STEP * turn
        tilt = tilt + FLIGHT_STEP * spin
        thrust = EARTH_GRAVITY + lift
        vx = vx + FLIGHT_STEP * (thrust * np.sin(tilt) + gust_x)
        vz = vz + FLIGHT_STEP * (thrust * np.cos(tilt) - EARTH_GRAVITY + gust_z)
        x, z = x + FLIGHT_STEP * vx, z + FLIGHT_STEP * vz
        crashed |= (np.abs(tilt) > TURNED) | (np.abs(z) > FALLEN)
        paid += x**2 + 2 * z**2 + 0.3 * tilt**2 + 0.004 * lift**2
    return np.where(crashed, np.nan, -10 * np.minimum(paid / FLIGHT_STEPS, 3.5))
