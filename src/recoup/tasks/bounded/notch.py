"""A filter that takes hum out of a measured signal: a notch, then a low pass."""

import numpy as np

from recoup.tasks.bounded.simulated import Knob, Machine

SAMPLES = 100
HUM = 0.55  # rad a sample
HUM_SIZE, HISS = 1.0, 0.3


def notch(best: tuple[float, float, float]) -> Machine:
    """Where the notch lies, how wide it is, and where the low pass ends, all in rad a sample."""
    names = ("notch", "width", "cutoff")
    widths = (5.0, 100.0, 30.0)
    knobs = tuple(Knob(*row) for row in zip(names, best, widths, strict=True))
    return Machine(knobs, 3 + SAMPLES, notch_returns)


def notch_returns(gains: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns `[n]`: minus the mean squared error of the filtered signal, times 10.

    The notch has zeros e^(+-iw) and poles r e^(+-iw), r = e^(-width / 2), and passes constants
    unchanged; the low pass is y <- y + (1 - e^-cutoff) (u - y). Wide notches delay, narrow ones
    ring. The signal is a sine of random pace and phase, so is the phase of the hum.
    """
    where, width, cutoff = gains.T
    t = np.arange(SAMPLES)[:, None]
    pace, phase, hum = 0.06 * 2 ** (0.5 * np.tanh(noise[:, 0])), 3 * noise[:, 1], 3 * noise[:, 2]
    signal = np.sin(pace * t + phase)
    came = signal + HUM_SIZE * np.sin(HUM * t + hum) + HISS * noise[:, 3:].T
    turn, r, share = np.cos(np.minimum(where, np.pi)), np.exp(-width / 2), -np.expm1(-cutoff)
    level = (1 - 2 * r * turn + r**2) / (2 - 2 * turn)
    u1 = u2 = came[0]
    v1, v2, y, paid = came[0].copy(), came[0].copy(), came[0].copy(), np.zeros(len(gains))
    for i in range(SAMPLES):
        v = level * (came[i] - 2 * turn * u1 + u2) + 2 * r * turn * v1 - r**2 * v2
        u1, u2, v1, v2 = came[i], u1, v, v1
        y = y + share * (v - y)
        paid += (y - signal[i]) ** 2
    return -10 * np.minimum(paid / SAMPLES, 5.0)
