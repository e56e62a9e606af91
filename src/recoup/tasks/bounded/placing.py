"""Where the best of a task lies in the unit box: another place in every run."""

import numpy as np

CENTRE, ANYWHERE, BORDER, CORNER = "centre", "anywhere", "border", "corner"
NEAR_MIDDLE = 0.08  # of the middle, at most
FROM_BORDER = 0.1  # of the box's width that a best placed anywhere keeps from its borders
OUTSIDE = 0.2  # how far outside the top of a slope may lie whose best is at a border


def place(where: str, dim: int, rng: np.random.Generator) -> np.ndarray:
    """The top `[D]` of a landscape over the unit box; outside of it for a border or a corner."""
    if where == CENTRE:
        return 0.5 + rng.uniform(-NEAR_MIDDLE, NEAR_MIDDLE, dim)
    inside = rng.uniform(FROM_BORDER, 1 - FROM_BORDER, dim)
    if where == ANYWHERE:
        return inside
    beyond = rng.uniform(0.0, OUTSIDE, dim)
    outside = np.where(rng.random(dim) < 0.5, -beyond, 1 + beyond)
    if where == CORNER:
        return outside
    chosen = rng.permutation(dim) < (dim + 1) // 2
    return np.where(chosen, outside, inside)


def rotation(dim: int, rng: np.random.Generator) -> np.ndarray:
    """A random rotation `[D, D]`."""
    factor, triangle = np.linalg.qr(rng.standard_normal((dim, dim)))
    return factor * np.sign(np.diag(triangle))
