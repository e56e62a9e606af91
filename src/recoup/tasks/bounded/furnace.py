"""A furnace under PI control with feed-forward: slow, late and disturbed."""

import numpy as np

from recoup.tasks.bounded.box import INT, LINEAR
from recoup.tasks.bounded.simulated import Knob, Machine

FURNACE_STEPS, HEAT_DELAY = 60, 3  # steps of 10 s; steps until heat arrives
GAIN, INERTIA = 9.0, 25.0  # degrees of full power over the surroundings, in tens; steps
SENSOR = 0.15  # noise of a measured temperature
MOST_AVERAGED = 12  # measurements that are averaged, at most


def furnace(best: tuple[float, float, float, int]) -> Machine:
    """Proportional gain, integral gain, feed-forward, and measurements that are averaged."""
    kp, ki, ahead, count = best
    knobs = (
        Knob("kp", kp, 50.0),
        Knob("ki", ki, 100.0),
        Knob("ahead", ahead, 0.25, LINEAR),
        Knob("average", count, MOST_AVERAGED - 3, INT),
    )
    return Machine(knobs, 4 + FURNACE_STEPS, furnace_returns)


def furnace_returns(gains: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns `[n]`: minus the mean error and a price of changes of power.

    The door opens at half time, for a time that is random; the set point and how cold it is around
    the furnace differ from episode to episode. Power lies in 0..1.
    """
    kp, ki, ahead, count = gains.T
    goal = 4.0 + 0.8 * np.tanh(noise[:, 0])
    loss, open_for = 1.5 + 0.5 * np.tanh(noise[:, 1]), 15 + 5 * np.tanh(noise[:, 2])
    cold = 0.7 * noise[:, 3]
    heat, total, before = np.zeros(len(gains)), np.zeros(len(gains)), np.zeros(len(gains))
    seen = np.zeros((MOST_AVERAGED, len(gains)))
    powers = np.zeros((HEAT_DELAY, len(gains)))
    weights = np.arange(MOST_AVERAGED)[:, None] < count
    weights = weights / weights.sum(0)
    paid = np.zeros(len(gains))
    for t in range(FURNACE_STEPS):
        seen[1:], seen[0] = seen[:-1].copy(), heat + SENSOR * noise[:, 4 + t]
        error = goal - np.sum(weights * seen, 0)
        wanted = ahead * goal + kp * error + ki * total
        power = np.clip(wanted, 0.0, 1.0)
        total += np.where(power == wanted, error, 0.0)  # no wind-up
        arriving, powers[1:], powers[0] = powers[-1].copy(), powers[:-1].copy(), power
        opened = (t >= FURNACE_STEPS // 2) & (t < FURNACE_STEPS // 2 + open_for)
        heat = heat + (GAIN * arriving - heat - cold - loss * opened) / INERTIA
        paid += np.abs(goal - heat) + 2.0 * np.abs(power - before)
        before = power
    return -paid / FURNACE_STEPS
