"""The still picture of docs/understand/weights.md, in light and dark: what weights come to.

python -m benchmarks.weights_picture docs/understand
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

import recoup

matplotlib.use("agg")
import matplotlib.pyplot as plt

SEED = 2
MEAN, STD = 1.5, 0.7  # where the figure of the page begins
SCHEMES = {"light": "default", "dark": "dark_background"}


def drawn():
    """The fifty draws of N(0, 1) that the page shows."""
    return np.random.default_rng(SEED).normal(size=50).round(2)


def weighed(mean, std, theta=None):
    """What `recoup.estimate` says of weights from N(0, 1) to N(mean, std)."""
    theta = drawn() if theta is None else theta
    return recoup.estimate(
        theta[:, None],
        np.ones(len(theta)),
        proposals=(np.zeros((1, 1)), np.ones((1, 1))),
        proposal=np.zeros(len(theta), int),
        target=(np.array([mean]), np.array([std])),
        weighting="own",
        baseline="none",
    )


def density(x, mean, std):
    return np.exp(-((x - mean) ** 2) / (2 * std**2)) / (std * np.sqrt(2 * np.pi))


def draw(path):
    """Two densities at half their height, and the share of each draw as a stick."""
    theta, e = drawn(), weighed(MEAN, STD)
    share, x = e.weights / e.weights.sum(), np.linspace(-4, 4, 400)
    figure, axes = plt.subplots(figsize=(7.2, 3), layout="constrained")
    axes.plot(x, density(x, 0, 1) / 2, color="tab:gray", label="drew the samples")
    axes.plot(x, density(x, MEAN, STD) / 2, color="tab:blue", label="the question is about")
    axes.vlines(theta, 0, share, color="tab:orange", linewidth=2, label="share of each sample")
    axes.set(xlabel="theta", xlim=(-4, 4), ylim=(0, 1))
    axes.legend(frameon=False, loc="upper left")
    axes.set_title(f"largest share {share.max():.0%}, worth {e.ess:.1f} of {len(theta)} samples")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main(folder):
    for scheme, style in SCHEMES.items():
        with plt.style.context(style):
            draw(Path(folder) / f"weights-{scheme}.png")


if __name__ == "__main__":
    main(sys.argv[1])
