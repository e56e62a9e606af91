"""The picture of docs/recoup.md: a constant baseline and a regression, on the same samples.

python -m benchmarks.rule_picture docs/recoup.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from benchmarks.rule import told_by
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.families.shapes import DIAGONAL
from recoup.core.plain import rule as rules
from recoup.core.rules import model as models
from recoup.core.rules.newton import clipped
from recoup.core.rules.window import Rule
from recoup.pictures.curves import ACCENT, INK, SECOND

MOVES, BATCH, NOISE, SEED = 4, 5, 1.2, 4
GRID = np.linspace(-3.2, 3.2, 300)


def objective(theta):
    """A return that rises, bends over and falls."""
    return 6 - 1.2 * (theta - 1.2) ** 2 + 0.8 * np.sin(2 * theta)


def run():
    """A few moves in one dimension: all samples, the last two distributions."""
    rng, rule = np.random.default_rng(SEED), Rule(DIAGONAL)
    rho, memory, theta, returns = Diagonal(np.array([-1.6]), np.array([0.5])), None, [], []
    proposals = [rho]
    for i in range(MOVES):
        fresh = rho.theta(rng.normal(size=(BATCH, 1)))
        theta.append(fresh)
        returns.append(objective(fresh[:, 0]) + NOISE * rng.normal(size=BATCH))
        every, earned = np.concatenate(theta), np.concatenate(returns)
        drawn_by = np.repeat(np.arange(i + 1), BATCH)
        stacked = Diagonal(*(np.stack(x) for x in zip(*proposals, strict=True)))
        told = told_by(every, earned, drawn_by, stacked)
        before, made = rho, rules.move(diagonal_gaussian(), rule, None, rho, told, memory)
        rho, memory = made.rho, made.memory
        proposals.append(rho)
    return every[:, 0], earned, before, rho, made


def model_of(theta, returns, rho, hyper):
    """The model's mean and error over `GRID`, and at the samples."""
    valid = np.ones(len(returns), bool)
    y, scale = clipped(np, returns, valid)
    z = rho.whitened(np, np.concatenate([theta, GRID])[:, None])
    points = models.points_of(np, z[: len(theta)], valid)
    fit = models.fit(np, points, y, hyper)
    length, _, bowl = np.exp(hyper)
    centred = z - points.mean
    far = (centred**2).sum(1) / 2
    far = far - far[: len(theta)].mean()
    apart = (z[:, None, 0] - z[None, : len(theta), 0]) ** 2
    trend = 3 * centred @ centred[: len(theta)].T + bowl * np.outer(far, far[: len(theta)])
    cross = 3 + np.exp(-apart / (2 * length)) + trend / length
    own = 4 + (3 * (centred**2).sum(1) + bowl * far**2) / length
    left = own - np.sum((cross @ np.linalg.inv(fit.factor).T) ** 2, axis=1)
    mean = returns.mean() + scale * cross @ fit.alpha
    error = scale * np.sqrt(np.maximum(left, 0) * fit.signal)
    n = len(theta)
    return mean[:n], mean[n:], error[n:]


def bell(axes, rho, colour, label):
    """A search distribution, at the foot of a panel."""
    low, high = axes.get_ylim()
    height = 0.25 * (high - low) * np.exp(-(((GRID - rho.mean) / rho.std) ** 2) / 2)
    axes.fill_between(GRID, low, low + height, color=colour, alpha=0.25, linewidth=0)
    axes.plot(GRID, low + height, color=colour, linewidth=1.2, label=label)


def main(path):
    """Draws it."""
    theta, returns, before, after, made = run()
    length, noise, bowl = made.memory.hyper
    hyper = np.array([length + 2 * made.found.notes.spread, noise, bowl])  # as the move used it
    fitted, curve, error = model_of(theta, returns, before, hyper)
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, sharex=True)
    new = np.arange(len(theta)) >= len(theta) - BATCH
    for axes, base in ((left, np.full(len(theta), returns.mean())), (right, fitted)):
        axes.vlines(theta, base, returns, color=INK, linewidth=0.8, alpha=0.5)
        axes.plot(theta[~new], returns[~new], "o", color="#8a949c", markersize=5, label="old")
        axes.plot(theta[new], returns[new], "o", color=SECOND, markersize=6, label="new")
        left_over = np.std(returns - base)
        axes.text(0.02, 0.97, f"left over: {left_over:.2f}", transform=axes.transAxes, va="top")
        axes.set_xlabel("theta")
        axes.spines[["top", "right"]].set_visible(False)
    left.axhline(returns.mean(), color=ACCENT, linewidth=1.6)
    left.set_title("a constant baseline", loc="left", fontsize=11)
    left.set_ylabel("return")
    right.fill_between(GRID, curve - error, curve + error, color=ACCENT, alpha=0.15, linewidth=0)
    right.plot(GRID, curve, color=ACCENT, linewidth=1.6)
    right.set_title("a regression, and the step it makes", loc="left", fontsize=11)
    left.set_ylim(returns.min() - 5, returns.max() + 6)
    left.set_xlim(GRID[0], GRID[-1])
    bell(left, before, INK, "before the move")
    bell(right, before, INK, "before the move")
    bell(right, after, ACCENT, "after it")
    left.legend(*right.get_legend_handles_labels(), frameon=False, fontsize=9, loc="upper right")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1])
