"""The picture of docs/understand/reuse.md, in light and dark: old samples and what they weigh.

python -m benchmarks.reuse_picture docs/understand
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

import recoup

matplotlib.use("agg")
import matplotlib.pyplot as plt

SEED, EACH = 4, 10
MEANS = np.array([-1.4, -0.9, -0.3, 0.3])[:, None]  # four proposals; the newest is the last
STDS = np.array([0.8, 0.75, 0.7, 0.6])[:, None]
SCHEMES = {"light": "default", "dark": "dark_background"}
COLOURS = ["tab:purple", "tab:red", "tab:orange", "tab:blue"]
NAMES = {"own": "against the own proposal", "balance": "against the mixture of all"}


def drawn():
    """The archive `[40, 1]`, and the proposal that drew each sample."""
    index = np.repeat(np.arange(len(MEANS)), EACH)
    noise = np.random.default_rng(SEED).normal(size=(len(index), 1))
    return MEANS[index] + STDS[index] * noise, index


def weighed(theta, index, weighting):
    """What `recoup.estimate` says of the weights at the newest proposal."""
    return recoup.estimate(
        theta,
        np.ones(len(theta)),
        proposals=(MEANS, STDS),
        proposal=index,
        target=(MEANS[-1], STDS[-1]),
        weighting=weighting,
        baseline="none",
    )


def density(x, mean, std):
    return np.exp(-((x - mean) ** 2) / (2 * std**2)) / (std * np.sqrt(2 * np.pi))


def draw_archive(axes, theta, index):
    """Four proposals with their samples below them, and their mixture."""
    x = np.linspace(-4.5, 2.5, 400)
    curves = [density(x, m, s) for m, s in zip(MEANS[:, 0], STDS[:, 0], strict=True)]
    for n, (curve, colour) in enumerate(zip(curves, COLOURS, strict=True)):
        newest = n == len(COLOURS) - 1
        axes.plot(x, curve, color=colour, linewidth=2.2 if newest else 1)
        rows = np.full(EACH, -0.06 - 0.06 * n)
        axes.scatter(theta[index == n, 0], rows, color=colour, s=14)
    axes.plot(x, np.mean(curves, axis=0), color="tab:gray", linestyle="--", label="their mixture")
    axes.set(title="the archive: 40 samples, and the four proposals that drew them", yticks=[])
    axes.legend(frameon=False, loc="upper left")


def draw_weights(axes, theta, index, weighting):
    """A stick for each sample, as high as its weight at the newest proposal."""
    e = weighed(theta, index, weighting)
    for n, colour in enumerate(COLOURS):
        own = index == n
        axes.vlines(theta[own, 0], 0, np.asarray(e.weights)[own], color=colour, linewidth=2)
    axes.set(xlabel="theta", xlim=(-4.5, 2.5))
    axes.set_title(
        f"{NAMES[weighting]}\nlargest {float(e.max_weight):.1f}, worth {float(e.ess):.0f} samples"
    )


def draw(path):
    """The archive above; below it its weights, two ways."""
    theta, index = drawn()
    figure = plt.figure(figsize=(7.2, 5), layout="constrained")
    top, below = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    draw_archive(top.subplots(), theta, index)
    left, right = below.subplots(1, 2, sharey=True)
    draw_weights(left, theta, index, "own")
    draw_weights(right, theta, index, "balance")
    left.set_ylabel("weight")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main(folder):
    for scheme, style in SCHEMES.items():
        with plt.style.context(style):
            draw(Path(folder) / f"reuse-{scheme}.png")


if __name__ == "__main__":
    main(sys.argv[1])
