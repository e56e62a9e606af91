"""Whether more samples help: reuse without weights, and with them, as N' grows on the toy."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.families.family import draw
from recoup.core.families.gaussian import log_ratio, score
from recoup.core.types import Given, Plain
from recoup.reproduce.claims import Contrast, Said, contrast
from recoup.reproduce.figures import gradients
from recoup.reproduce.figures.bounds import APART
from recoup.reproduce.figures.gradients import rho_of
from recoup.reproduce.jobs import Arrays, FigureJob, Tick

SIZES = (40, 400, 4_000)  # N'
GROUPS, EACH = 20, 5  # of estimates, and estimates in each
SMALL = 0.01  # of the squared length of the true gradient
METHODS = ("niw", "iw")


def consistency_job() -> FigureJob:
    """Estimates without a baseline at every N', with weights and without."""
    settings = {"cases": APART, "sizes": SIZES, "groups": GROUPS, "each": EACH}
    return FigureJob("toy/consistency", settings, 3.0 * len(APART), _estimates)


def _estimates(tick: Tick) -> Arrays:
    """Gradients `[group, estimate, (eta, tau)]` by case, method and N'."""
    found: Arrays = {}
    with jax.enable_x64(True):
        for i, (case, (target, proposal)) in enumerate(APART.items()):
            for size in SIZES:
                key = jax.random.fold_in(jax.random.key(7), 10 * i + SIZES.index(size))
                both = _mean_terms(key, rho_of(*target), rho_of(*proposal), size)
                for method, estimates in zip(METHODS, both, strict=True):
                    found[f"{case} {method} {size}"] = np.asarray(estimates)
            tick(1 / len(APART))
    return found


@partial(jax.jit, static_argnums=3)
def _mean_terms(key: Array, target: Any, source: Given, size: int) -> tuple[Array, Array]:
    """Estimates `[group, estimate, 2]` of the gradient at `target`: without and with weights."""
    key_draw, key_roll = jax.random.split(key)
    count = GROUPS * EACH * size
    theta = draw(key_draw, source, count)
    returns = gradients.toy().rollouts(jax.random.split(key_roll, count), theta)
    scores = jnp.concatenate(jax.vmap(lambda one: score(target, one))(theta), -1)
    weights = jnp.exp(jax.vmap(lambda one: log_ratio(target, source, one))(theta))
    terms = returns[:, None] * scores
    shape = (GROUPS, EACH, size, 2)
    return terms.reshape(shape).mean(2), (weights[:, None] * terms).reshape(shape).mean(2)


def collect_consistency(cases: Plain, results: dict[str, Arrays]) -> Arrays:
    """Mean squared errors over the squared gradient `[group]` by case, method and N'."""
    surface, data = results["toy/surface"]["mean"], {}
    for name, estimates in results["toy/consistency"].items():
        target, _ = cases[name.split()[0]]
        truth = gradients.true_gradient(surface, *target)
        squares = ((estimates - truth) ** 2).sum(-1).mean(-1)
        data[f"error {name}"] = squares / (truth @ truth)
    return data


def _fall(data: Arrays, case: str, method: str) -> np.ndarray:
    """By how much the log of the error falls from the last but one N' to the last `[group]`."""
    before, last = (np.log(data[f"error {case} {method} {size}"]) for size in SIZES[-2:])
    return before - last


def _remains(data: Arrays, case: str) -> tuple[Contrast, Contrast]:
    """The contrasts of an error of niw-pgpe that more samples do not mend."""
    rest = data[f"error {case} niw {SIZES[-1]}"]
    what = f"log 2 minus the fall of its log error from N' = {SIZES[-2]}, {case}"
    return (
        contrast(f"error of niw-pgpe at N' = {SIZES[-1]:,}, {case}, minus {SMALL}", rest - SMALL),
        contrast(what, np.log(2) - _fall(data, case, "niw")),
    )


SAID = (
    Said(
        "bounds.niw-inconsistent",
        "If we naively use data D' [without weights], we have an inconsistency problem [as N' "
        "grows without end]; the inconsistency can not be overcome by increasing the number of "
        "samples.",
        lambda data: [found for case in APART for found in _remains(data, case)],
        f"The error, squared and over the squared gradient, stays above {SMALL:.0%} at N' = "
        f"{SIZES[-1]:,}, and ten times as many samples do not halve it.",
        where="S3.1, S4.1.3",
    ),
    Said(
        "bounds.iw-consistent",
        "[Importance sampling] gives a consistent gradient estimator.",
        lambda data: {
            f"fall of the log error of iw-pgpe from N' = {SIZES[-2]} to {SIZES[-1]:,}, {case}, "
            "minus log 2": _fall(data, case, "iw") - np.log(2)
            for case in APART
        },
        "Ten times as many samples more than halve its squared error.",
        where="S3.1",
    ),
)
