"""A linear-quadratic task whose expected return, gradient and Fisher information are exact.

s_1 = 0.8 + 0.3 e, s' = 0.9 s + a + 0.2 e, r = 2 + s - s^2 - 0.3 a^2, phi(s) = (s, 1).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from recoup.core.archive import Drawn, from_samples
from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import discounted_rewards, gaussian_policy
from recoup.engine.composition import estimator_of
from recoup.engine.methods import method_row
from recoup.tasks.models import Model, episode

HORIZON, DISCOUNT = 4, 0.9

MODEL = Model(
    initial=lambda xp, noise: 0.8 + 0.3 * noise,
    transition=lambda xp, s, a, noise: 0.9 * s + a + 0.2 * noise,
    reward=lambda xp, s, a, after: 2 + s[0] - s[0] ** 2 - 0.3 * a[0] ** 2,
    basis=lambda xp, s: xp.stack([s[0], xp.ones_like(s[0])]),
    features=2,
    low=(-np.inf,),
    high=(np.inf,),
)


def expected_return(x, discount):
    """J of the policy a ~ N(x0 s + x1, x2^2), by the moments of s; and E[phi phi^T] by step."""
    mean, square, total, moments = 0.8, 0.8**2 + 0.3**2, 0.0, []
    for t in range(HORIZON):
        action_square = x[0] ** 2 * square + 2 * x[0] * x[1] * mean + x[1] ** 2 + x[2] ** 2
        total += discount**t * (2 + mean - square - 0.3 * action_square)
        moments.append([[square, mean], [mean, 1.0]])
        gain = 0.9 + x[0]
        square = gain**2 * square + 2 * gain * x[1] * mean + x[1] ** 2 + x[2] ** 2 + 0.2**2
        mean = gain * mean + x[1]
    return total, np.array(moments)


def exact_gradient(x, discount=DISCOUNT, h=1e-5):
    """dJ/dx by central differences of a polynomial."""
    steps = np.eye(3) * h
    return np.array(
        [
            (expected_return(x + d, discount)[0] - expected_return(x - d, discount)[0]) / (2 * h)
            for d in steps
        ]
    )


def exact_natural_gradient(x, discount=1.0):
    """F^-1 grad J, F the Fisher information of a trajectory."""
    fisher = np.zeros((3, 3))
    fisher[:2, :2] = expected_return(x, discount)[1].sum(0) / x[2] ** 2
    fisher[2, 2] = 2 * HORIZON / x[2] ** 2
    return np.linalg.solve(fisher, exact_gradient(x, discount))


def policy(x):
    return Policy(jnp.asarray(x[:2]), jnp.asarray(x[2:]))


@partial(jax.jit, static_argnums=2)
def episodes(key, x, n):
    """N trajectories of the policy x."""
    return jax.vmap(episode(MODEL, HORIZON), (0, None))(jax.random.split(key, n), policy(x))


@partial(jax.jit, static_argnums=4)
def archive_of(trajectories, proposals, drawn_by, target, discount):
    """An archive of trajectories that several policies drew."""
    returns = jax.vmap(lambda h: jnp.sum(discounted_rewards(discount, h)))(trajectories)
    valid = jnp.ones(returns.shape, bool)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *map(policy, proposals))
    drawn = Drawn(trajectories, returns, valid, stacked, drawn_by, policy(target))
    return from_samples(gaussian_policy(), drawn, keep="own")


def estimate(method, trajectories, proposals, drawn_by, target, discount=DISCOUNT, **settings):
    """The estimate of `method` at the policy `target`."""
    estimator = estimator_of(method_row(method, **settings), gaussian_policy(), discount)

    @jax.jit
    def compiled(trajectories):
        archive = archive_of(trajectories, proposals, drawn_by, target, discount)
        return estimator(policy(target), archive)

    return compiled(trajectories)
