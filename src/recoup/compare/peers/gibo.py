"""GIBO (Mueller et al., 2021): a local search by the gradient of a Gaussian process of our own."""

import numpy as np

from recoup.compare.peers.slopes import LocalSearch, Slope, slope
from recoup.compare.peers.small_gp import SmallGP
from recoup.core.types import Settings

STEP_LENGTH = 0.25  # in lengths of the process, along the gradient


def gibo(dim: int, seed: int, settings: Settings) -> LocalSearch:
    """A run, with the steps that its authors take in the unit box."""
    return LocalSearch(dim, seed, information, stepped)


def information(at: Slope, covariance: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """What each candidate takes off the variance of the gradient `[m]`.

    Implements: mueller2021 S4.1 alpha(z) = tr cov(grad f) - tr cov(grad f | z) = |c|^2 / s^2, with
    the covariance c of the gradient with the return at z, and its variance s^2.
    """
    return (covariance**2).sum(1) / variance


def stepped(gp: SmallGP, x: np.ndarray) -> np.ndarray:
    """The next iterate: along the expected gradient, its length taken off, in lengths."""
    mean = slope(gp, x).mean
    size = float(np.linalg.norm(mean))
    return x + STEP_LENGTH * np.exp(gp.log[:-2]) * mean / size if size > 0 else x
