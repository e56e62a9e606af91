"""Gradients of the toy: the true one, and the spread of its estimates."""

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.families.family import draw
from recoup.core.families.gaussian import Diagonal
from recoup.core.types import Plain
from recoup.engine.estimate import estimate
from recoup.engine.methods import METHODS
from recoup.reproduce.jobs import Arrays, FigureJob, Tick
from recoup.tasks.registry import make_task
from recoup.tasks.task import Task

N, ITERATIONS, EPSILON, FLOOR = 10, 20, 0.1, 0.05
ON_POLICY = 10_000  # samples of the paper's true gradient
BUCKETS = (5, 10, 15, 20)  # lengths of the padded archives, one compilation each
CHUNK = 1_000  # trials at once
GRID = np.linspace(-9.0, 9.0, 1801)  # theta of the table of expected returns
SURFACE_DRAWS = 4_000  # of the task's noise, for each theta of that table

SHAPED: dict[str, Plain] = {  # what the introduction names against large weights
    "truncated": {"truncate": 2.0},
    "flattened": {"flatten": 0.5},
    "normalised": {"normalize": True},
}
FOLLOWED = (  # methods whose gradients are estimated
    *("pgpe", "pgpe-ob", "niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob"),
    "mis-pgpe-ob",
)
ESTIMATORS: dict[str, Plain] = {  # what `estimate` is told; a window of 1: no reuse
    **{
        name: {key: getattr(METHODS[name], key) for key in ("window", "weighting", "baseline")}
        for name in FOLLOWED
    },
    "iw-pgpe-split": {"window": None, "weighting": "own", "baseline": "split"},
    **{
        name: {"window": None, "weighting": "own", "baseline": "none", **shape}
        for name, shape in SHAPED.items()
    },
}


# -- the true gradient --


def surface_job(draws: int = SURFACE_DRAWS) -> FigureJob:
    """E[R | theta] on a grid of theta, each with the same `draws` of the task's noise."""
    return FigureJob("toy/surface", {"draws": draws}, draws / 1_000, partial(_surface, draws))


def _surface(draws: int, tick: Tick) -> Arrays:
    total, squares, chunk = np.zeros(GRID.size), np.zeros(GRID.size), 500
    rollouts = toy().rollouts

    @jax.jit
    def returns(key: Array, theta: Array) -> Array:
        keys = jax.random.split(key, chunk)
        return jax.lax.map(lambda one: rollouts(keys, jnp.full((chunk, 1), one)), theta)

    with jax.enable_x64(True):
        for i in range(draws // chunk):
            found = np.asarray(returns(jax.random.fold_in(jax.random.key(0), i), GRID))
            total, squares = total + found.sum(1), squares + (found**2).sum(1)
            tick(chunk / draws)
    mean = total / draws
    return {"mean": mean, "stderr": np.sqrt((squares / draws - mean**2) / draws)}


def expected_return(surface: np.ndarray, eta: Any, tau: Any) -> np.ndarray:
    """J(rho) of the toy, int p(theta | rho) E[R | theta] dtheta; eta and tau of any one shape."""
    return _masses(eta, tau) @ surface


def true_gradient(surface: np.ndarray, eta: Any, tau: Any) -> np.ndarray:
    """The gradient of J with respect to (eta, tau), `[..., 2]`, by quadrature over the table."""
    masses = _masses(eta, tau)
    eta, tau = np.asarray(eta)[..., None], np.asarray(tau)[..., None]
    z = (GRID - eta) / tau
    return np.stack([(masses * z / tau) @ surface, (masses * (z**2 - 1) / tau) @ surface], axis=-1)


def _masses(eta: Any, tau: Any) -> np.ndarray:
    """Masses `[..., G]` of the grid's points under N(eta, tau^2), which sum to one."""
    z = (GRID - np.asarray(eta)[..., None]) / np.asarray(tau)[..., None]
    density = np.exp(-(z**2) / 2)
    return density / density.sum(-1, keepdims=True)


def rho_of(eta: float, tau: float) -> Diagonal:
    """A distribution over one parameter."""
    return Diagonal(jnp.array([float(eta)]), jnp.array([float(tau)]))


def on_policy_gradient(key: Array, rho: Diagonal, samples: int) -> Array:
    """The plain PGPE estimate from so many on-policy samples, as the paper finds the true one."""
    return estimated(key, rho, rho, samples, [{"weighting": "none", "baseline": "none"}])[0]


def estimated(
    key: Array, rho: Diagonal, source: Diagonal, samples: int, how: Iterable[Plain]
) -> Array:
    """Gradients `[K, 2]` at rho with respect to (eta, tau), from the same samples of a source."""
    key_draw, key_roll = jax.random.split(key)
    theta = draw(key_draw, source, samples)
    returns = toy().rollouts(jax.random.split(key_roll, samples), theta)
    drawn_by: Plain = {
        "proposals": (source.mean[None], source.std[None]),
        "proposal": jnp.zeros(samples, int),
        "target": rho,
    }
    return jnp.stack([joint(estimate(theta, returns, **drawn_by, **each)) for each in how])


def joint(found: Any) -> Array:
    """The gradient `[2 D]` of an estimate, that of the means first."""
    return jnp.concatenate([found.mean_gradient, found.std_gradient])


# -- the study of Figure 1 --


def variance_jobs(trials: int, starts: int) -> list[FigureJob]:
    """A job for every start: a path along the true gradient, and the estimates on it."""
    return [
        FigureJob(
            f"toy/variance/{start}",
            {"trials": trials, "start": start, "estimators": ESTIMATORS},
            5 + trials / 300,
            partial(_variances, start, trials),
        )
        for start in range(starts)
    ]


def _variances(start: int, trials: int, tick: Tick) -> Arrays:
    """Moments of the estimates `[L, methods, (eta, tau)]` at each point of one path."""
    with jax.enable_x64(True):
        key_start, key_path, key_trials = jax.random.split(jax.random.key(start), 3)
        path, truth = _path(key_start, key_path)
        mean, variance, stderr, weight = [], [], [], []
        for length in range(1, ITERATIONS + 1):
            key = jax.random.fold_in(key_trials, length)
            found, largest = _estimates(key, path, length, trials)
            mean.append(found.mean(0))
            variance.append(found.var(0))
            stderr.append(_stderr_of_variance(found))
            weight.append(largest.mean(0))
            tick(length / (ITERATIONS * (ITERATIONS + 1) / 2))
    return {
        "eta": path[:, 0],
        "tau": path[:, 1],
        "on_policy": truth,
        "mean": np.stack(mean),
        "variance": np.stack(variance),
        "variance_stderr": np.stack(stderr),
        "max_weight": np.stack(weight),
    }


def _path(key_start: Array, key_path: Array) -> tuple[np.ndarray, np.ndarray]:
    """rho_1 .. rho_L `[L, 2]` moved by the true joint gradient, and that gradient `[L, 2]`."""
    gradient = jax.jit(lambda key, rho: on_policy_gradient(key, rho, ON_POLICY))
    eta = float(jax.random.normal(key_start, (), jnp.float64))
    rho, path, truth = np.array([eta, 1.0]), [], []
    for i in range(ITERATIONS):
        key = jax.random.fold_in(key_path, i)
        g = np.asarray(gradient(key, rho_of(*rho)))
        path.append(rho)
        truth.append(g)
        rho = rho + EPSILON * g / np.linalg.norm(g)
        rho = np.array([rho[0], max(rho[1], FLOOR)])
    return np.stack(path), np.stack(truth)


def _estimates(
    key: Array, path: np.ndarray, length: int, trials: int
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients `[M, methods, 2]` at the end of a path of `length`, and the largest weights."""
    bucket = next(size for size in BUCKETS if size >= length)
    padded = np.resize(path[:length], (bucket, 2))  # what is beyond `length` is masked
    run = _trials(bucket)
    parts = [
        run(jax.random.split(jax.random.fold_in(key, i), min(CHUNK, trials)), padded, length)
        for i in range(-(-trials // CHUNK))
    ]
    gradients, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return gradients[:trials], weights[:trials]


@lru_cache
def _trials(bucket: int) -> Any:
    """`run(keys [M], path [bucket, 2], length)`: gradients and largest weights of M trials."""

    def one(key: Array, path: Array, length: Array) -> tuple[Array, Array]:
        key_draw, key_roll = jax.random.split(key)
        drawn_by = jnp.repeat(jnp.arange(bucket), N)
        eta, tau = path[drawn_by, :1], path[drawn_by, 1:]
        theta = eta + tau * jax.random.normal(key_draw, eta.shape, eta.dtype)
        returns = toy().rollouts(jax.random.split(key_roll, len(theta)), theta)
        kept = {1: drawn_by == length - 1, None: drawn_by < length}
        target = (path[length - 1, :1], path[length - 1, 1:])
        found = [
            estimate(
                theta,
                returns,
                told=kept[settings["window"]],
                proposals=(path[:, :1], path[:, 1:]),
                proposal=drawn_by,
                target=target,
                **{key: value for key, value in settings.items() if key != "window"},
            )
            for settings in ESTIMATORS.values()
        ]
        return jnp.stack([joint(e) for e in found]), jnp.stack([e.max_weight for e in found])

    return jax.jit(jax.vmap(one, (0, None, None)))


def _stderr_of_variance(estimates: np.ndarray) -> np.ndarray:
    """Standard error of the variance over the leading axis, from the fourth moment."""
    squares = (estimates - estimates.mean(0)) ** 2
    return squares.std(0) / np.sqrt(len(estimates))


@lru_cache
def toy() -> Task:
    """The paper's toy, one object, so that what was compiled for it is found again."""
    return make_task("toy")
