"""What the tests compare with: plain loops and quadrature that share no code with the library."""

import math

import numpy as np


def random_problem(seed=0, *, proposals=3, samples=23, dim=3, dtype=np.float64):
    """Samples of `proposals` asymmetric, ragged distributions, and a target near to them."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0.0, 0.4, (proposals, dim))
    stds = np.exp(rng.normal(0.1, 0.25, (proposals, dim)))
    index = np.sort(rng.integers(0, proposals, samples))
    theta = means[index] + stds[index] * rng.normal(size=(samples, dim))
    returns = 2.0 + theta[:, 0] - 0.3 * theta[:, -1] ** 2 + 0.1 * rng.normal(size=samples)
    target = (means[-1] + 0.1, stds[-1] * np.exp(rng.normal(0, 0.1, dim)))
    as_type = [np.asarray(x, dtype) for x in (theta, returns, means, stds, *target)]
    theta, returns, means, stds, mean, std = as_type
    return {
        "theta": theta,
        "returns": returns,
        "proposals": (means, stds),
        "proposal": index,
        "target": (mean, std),
    }


def log_normal(x, mean, std):
    """Log-density of a diagonal Gaussian, one coordinate after another."""
    total = 0.0
    for xi, mi, si in zip(x, mean, std, strict=True):
        total += -0.5 * ((xi - mi) / si) ** 2 - math.log(si) - 0.5 * math.log(2 * math.pi)
    return total


def loop_weights(problem, weighting, power, flatten, truncate, normalize):
    theta, index = problem["theta"].astype(float), problem["proposal"]
    means, stds = (x.astype(float) for x in problem["proposals"])
    mean, std = (x.astype(float) for x in problem["target"])
    n, weights = len(theta), []
    for i in range(n):
        p = math.exp(log_normal(theta[i], mean, std))
        own = math.exp(log_normal(theta[i], means[index[i]], stds[index[i]]))
        mixture = 0.0
        for lag in range(len(means)):
            share = sum(1 for j in index if j == lag) / n
            mixture += share * math.exp(log_normal(theta[i], means[lag], stds[lag]))
        w = {
            "none": 1.0,
            "own": p / own,
            "balance": p / mixture,
            "power-mean": (p / own) / ((1 - power) + power * p / own),
        }[weighting]
        w = w if flatten is None else w**flatten
        weights.append(w if truncate is None else min(w, truncate))
    if normalize:
        average = sum(weights) / n
        weights = [w / average for w in weights]
    return np.array(weights)


def loop_scores(problem):
    """Scores `[N', 2D]` by coordinate: means first, then standard deviations."""
    theta = problem["theta"].astype(float)
    mean, std = (x.astype(float) for x in problem["target"])
    rows = []
    for x in theta:
        by_mean = [(xi - m) / s**2 for xi, m, s in zip(x, mean, std, strict=True)]
        by_std = [((xi - m) ** 2 - s**2) / s**3 for xi, m, s in zip(x, mean, std, strict=True)]
        rows.append(by_mean + by_std)
    return np.array(rows)


def loop_baseline(kind, returns, weights, scores, order):
    """The baseline of each sample and coordinate `[N', 2D]`, and as `recoup.estimate` gives it."""
    n, width = scores.shape
    norms = [sum(s**2 for s in row) for row in scores]

    def optimal(members):
        top = sum(weights[i] ** 2 * norms[i] * returns[i] for i in members)
        bottom = sum(weights[i] ** 2 * norms[i] for i in members)
        return top / bottom if bottom else 0.0  # nobody else: no baseline

    if kind == "none":
        given = 0.0
    elif kind == "mean":
        given = sum(w * r for w, r in zip(weights, returns, strict=True)) / sum(weights)
    elif kind == "optimal":
        given = optimal(range(n))
    elif kind == "leave-one-out":
        given = np.array([optimal([j for j in range(n) if j != i]) for i in range(n)])
    elif kind == "earlier":
        given = np.array(
            [optimal([j for j in range(n) if j != i and order[j] <= order[i]]) for i in range(n)]
        )
    elif kind == "split":
        given = np.array([optimal(range(1 - i % 2, n, 2)) for i in range(n)])
    else:
        given = np.array(
            [
                sum(weights[i] ** 2 * scores[i, d] ** 2 * returns[i] for i in range(n))
                / sum(weights[i] ** 2 * scores[i, d] ** 2 for i in range(n))
                for d in range(width)
            ]
        )
        return np.broadcast_to(given, (n, width)), given
    column = np.broadcast_to(given, (n,))
    return np.repeat(column[:, None], width, axis=1), given


def loop_estimate(
    problem,
    *,
    weighting,
    baseline,
    power=0.1,
    flatten=None,
    truncate=None,
    normalize=False,
):
    """Everything `recoup.estimate` says, by loops over samples and coordinates."""
    returns = problem["returns"].astype(float)
    n, dim = problem["theta"].shape
    weights = loop_weights(problem, weighting, power, flatten, truncate, normalize)
    scores = loop_scores(problem)
    each, given = loop_baseline(baseline, returns, weights, scores, problem["proposal"])
    gradient = np.zeros(2 * dim)
    for i in range(n):
        for d in range(2 * dim):
            gradient[d] += weights[i] * (returns[i] - each[i, d]) * scores[i, d] / n
    values = [w * r for w, r in zip(weights, returns, strict=True)]
    objective = sum(values) / n
    if normalize:
        values = [w * (r - objective) for w, r in zip(weights, returns, strict=True)]
    apart = values if normalize else [v - objective for v in values]
    stderr = stratified_error(apart, list(problem["proposal"])) / n
    return {
        "mean_gradient": gradient[:dim],
        "std_gradient": gradient[dim:],
        "weights": weights,
        "ess": sum(weights) ** 2 / sum(w**2 for w in weights),
        "max_weight": max(weights),
        "objective": objective,
        "objective_stderr": stderr,
        "baseline": given,
    }


def stratified_error(residuals, strata):
    """The error of a sum of residuals: about the mean of their stratum where it has several."""
    n, total = len(residuals), 0.0
    for stratum in set(strata):
        own = [u for u, s in zip(residuals, strata, strict=True) if s == stratum]
        if len(own) == 1:
            total += n / (n - 1) * own[0] ** 2
        else:
            mean = sum(own) / len(own)
            total += len(own) / (len(own) - 1) * sum((u - mean) ** 2 for u in own)
    return math.sqrt(total)


def gauss_hermite(mean, std, points=80):
    """Nodes and probabilities that make sums exact expectations under N(mean, std^2)."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(points)
    return mean + std * nodes, mass / mass.sum()
