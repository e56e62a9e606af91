"""Exact expectations under a two-dimensional proposal, and everything the theorems speak of."""

import numpy as np
from oracles import gauss_hermite
from scipy import stats


class Case:
    """IW-PGPE with a known return: N' samples of one proposal, by tensor quadrature."""

    def __init__(self, target, proposal, reward, *, discount, horizon, samples, points=120):
        self.target, self.proposal = target, proposal
        self.scale = sum(discount**t for t in range(horizon))
        self.setting = {"discount": discount, "horizon": horizon, "samples": samples}
        axes = [gauss_hermite(m, s, points) for m, s in zip(*proposal, strict=True)]
        grid = np.meshgrid(*(nodes for nodes, _ in axes), indexing="ij")
        self.theta = np.stack([g.ravel() for g in grid], axis=1)
        self.mass = np.multiply.outer(axes[0][1], axes[1][1]).ravel()
        self.reward = reward(self.theta)
        self.returns = self.scale * self.reward
        self.w = np.exp(
            stats.norm.logpdf(self.theta, *target).sum(1)
            - stats.norm.logpdf(self.theta, *proposal).sum(1)
        )
        eta, tau = np.array(target[0]), np.array(target[1])
        self.s_eta = (self.theta - eta) / tau**2
        self.s_tau = ((self.theta - eta) ** 2 - tau**2) / tau**3

    def scores(self, block):
        both = np.concatenate([self.s_eta, self.s_tau], axis=1)
        return {"eta": self.s_eta, "tau": self.s_tau, "joint": both}[block]

    def variance(self, block, b=0.0):
        """Trace of the covariance of the mean of N' terms w (R - b) s."""
        terms = (self.w * (self.returns - b))[:, None] * self.scores(block)
        mean = self.mass @ terms
        return float(self.mass @ (terms**2).sum(1) - (mean**2).sum()) / self.setting["samples"]

    def curvature(self, block):
        return float(self.mass @ (self.w**2 * (self.scores(block) ** 2).sum(1)))

    def optimal(self, block):
        weight = self.mass * self.w**2 * (self.scores(block) ** 2).sum(1)
        return float(weight @ self.returns / weight.sum())

    def reduction(self, block, b):
        return self.variance(block) - self.variance(block, b)


def wavy(low, high):
    """A reward in [low, high] without symmetry."""

    def reward(theta):
        wave = np.sin(1.3 * theta[:, 0] + 0.4) * np.cos(0.7 * theta[:, 1] - 0.9)
        return low + (high - low) * (wave + 1) / 2

    return reward
