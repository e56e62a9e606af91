"""BoTorch's qLogNEI between bounds, a trial at a time, as its tutorials make it."""

import warnings

import numpy as np
import torch

from recoup.compare.peers.small_gp import best_tried
from recoup.core.types import Settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what they import, which is to go
    from botorch.acquisition import qLogNoisyExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import ExactMarginalLogLikelihood

STARTUP = 10  # points of Sobol's before there is a model, unless said
POSTERIOR_SAMPLES = 256
RESTARTS, RAW_SAMPLES = 10, 512  # of the search for the best candidate
RECENT = 20  # trials that stand for what it tries now


def qlognei(dim: int, seed: int, settings: Settings) -> "Improving":
    """A run; `startup` points at first."""
    return Improving(dim, seed, int(settings.get("startup", STARTUP)))


class Improving:
    """SingleTaskGP with its own priors, and the candidate with the highest noisy log EI."""

    batch = 1

    def __init__(self, dim: int, seed: int, startup: int) -> None:
        sobol = torch.quasirandom.SobolEngine(dim, scramble=True, seed=seed % 2**31)
        self._first = sobol.draw(startup, dtype=torch.double).numpy()
        self._x, self._y, self._seed = np.empty((0, dim)), np.empty(0), seed
        self._bounds = torch.tensor([[0.0] * dim, [1.0] * dim], dtype=torch.double)

    def ask(self) -> np.ndarray:
        """The next trial."""
        if len(self._y) < len(self._first):
            return self._first[[len(self._y)]]
        number = (self._seed + len(self._y)) % 2**31
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that are tried again
            torch.manual_seed(number)
            return self._best(number)

    def _best(self, number: int) -> np.ndarray:
        x, y = torch.from_numpy(self._x), torch.from_numpy(self._y)[:, None]
        dim = x.shape[1]
        gp = SingleTaskGP(
            x,
            y,
            input_transform=Normalize(dim, bounds=self._bounds),
            outcome_transform=Standardize(1),
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        sampler = SobolQMCNormalSampler(torch.Size([POSTERIOR_SAMPLES]), seed=number)
        worth = qLogNoisyExpectedImprovement(gp, x, sampler=sampler, prune_baseline=True)
        found, _ = optimize_acqf(
            worth, self._bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES
        )
        return found.detach().numpy()

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """Its return; BoTorch maximises."""
        self._x, self._y = np.concatenate([self._x, x]), np.concatenate([self._y, returns])

    def mean(self) -> np.ndarray:
        """The tried point with the highest posterior mean; the middle before there is any."""
        middle = np.full(self._x.shape[1], 0.5)
        return best_tried(self._x, self._y) if len(self._y) > 1 else middle

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it tried last."""
        return self._x[-RECENT:]
