"""The search: `init`, `ask`, `tell` as pure functions, jit- and vmap-able over many runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple
from weakref import ref

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import (
    InputError,
    check_between,
    check_count,
    check_finite,
    check_flag,
    check_key,
    check_shape,
    check_stds,
    check_vector,
    is_traced,
)
from recoup.core import archive as archives
from recoup.core.archive import Archive
from recoup.core.estimators.whole import Estimate, Estimator
from recoup.core.families.gaussian import Rho
from recoup.engine.composition import estimator_of, update_of
from recoup.engine.methods import Method, method_row
from recoup.engine.spaces import Space, action_space, parameter_space, without_failed

DEFAULT_BATCHES = 100  # kept by methods that reuse everything, unless `capacity` says otherwise


class SearchState(NamedTuple):
    """Everything a search knows: the distribution, its archive, its update rule's memory."""

    rho: Rho
    archive: Archive
    update: Any
    moves: Array  # how often the distribution has moved; the number of the newest proposal
    dropped: Array  # batches that a full archive has dropped

    @property
    def mean(self) -> Array:
        """Means of the search distribution `[D]`."""
        return self.rho.eta

    @property
    def std(self) -> Array:
        """Standard deviations of the search distribution `[D]`; in action space sigma `[A]`."""
        return self.rho.tau


class SearchInfo(NamedTuple):
    """What one `tell` saw, at the distribution before the move."""

    objective: Array  # estimated expected return of the distribution that moved
    objective_stderr: Array
    ess: Array  # effective sample size, in pairs under mirrored sampling
    max_weight: Array
    weights: Array  # [B, N] of every sample in the archive, zero where there is none
    baseline: Any
    samples: Array  # valid samples in the archive
    failed: Array  # results of this batch that are not finite
    stale: Array  # results of this batch whose proposal is too old to be remembered
    dropped: Array  # batches that a full archive has dropped so far
    kl: Array  # KL(new || old) of the move; in action space, of an episode of this batch
    flatten: Array | None  # nu of w^nu, for methods that may choose it


class Search(NamedTuple):
    """A search as pure functions, and the settings it was made with."""

    init: Callable[..., SearchState]
    ask: Callable[[Array, SearchState], tuple[Any, SearchState]]
    tell: Callable[..., tuple[SearchState, SearchInfo]]
    estimate: Estimator  # estimate(rho, state.archive), for any rho
    settings: Method
    dim: int
    batch: int
    capacity: int


class Shape(NamedTuple):
    """The fixed sizes of a search's arrays."""

    dim: int
    batch: int
    blocks: int  # batches kept
    late: int  # proposals that a result may lie behind the newest
    proposals: int  # slots in the ring of proposals
    overflows: bool  # whether a dropped batch is one the method would have kept


class Episode(NamedTuple):
    """The shape of an episode, for methods that see inside it."""

    actions: int
    horizon: int
    discount: float


def search(
    method: str,
    *,
    dim: int,
    batch: int,
    capacity: int | None = None,
    late: int | None = None,
    table: bool = True,
    horizon: int | None = None,
    actions: int | None = None,
    discount: float | None = None,
    **settings: Any,
) -> Search:
    """A search by `method` over `dim` parameters, `batch` results a move.

    `capacity` is the number of samples the archive can hold, rounded up to whole batches: a full
    archive drops its oldest batch and `info.dropped` counts it (by default the method's window, or
    100 batches for methods that reuse everything). `late` is how many proposals a result may lie
    behind the newest (by default as many as batches are kept). `table=False` keeps, for balance
    weights, only the mixture instead of every proposal's densities: O(N') memory, right as long as
    the archive never drops a batch (a window always keeps the table). `settings` replace those of
    the method's row.

    A method that explores in action space needs the `horizon` T of an episode, and takes how many
    `actions` A there are (1 unless said; `dim` is F A, features by actions) and the `discount` of
    rewards (1 unless said). `ask` then gives a policy and the seeds of its episodes, `tell` takes a
    `recoup.Trajectory` of arrays with leading axis `[N]` in place of theta and returns, and the
    archive holds `capacity` T (F + A + 1) numbers. The policy's sigma stays above `tau_floor`.
    """
    row = method_row(method, **settings)
    dim, batch = check_count("dim", dim), check_count("batch", batch)
    episode = _episode(row, dim, horizon, actions, discount)
    if row.mirrored and batch % 2:
        raise InputError(f"batch must be even for mirrored sampling, got {batch}.")
    if capacity is not None and check_count("capacity", capacity) < batch:
        raise InputError(f"capacity must hold a batch of {batch}, got {capacity}.")
    if late is not None:
        check_count("late", late, least=0)
    table = check_flag("table", table) or row.window is not None
    return _build(row, _shape(row, dim, batch, capacity, late), episode, table)


def _episode(
    row: Method, dim: int, horizon: int | None, actions: int | None, discount: float | None
) -> Episode | None:
    """The shape of an episode, for methods that see inside it."""
    given = {"horizon": horizon, "actions": actions, "discount": discount}
    if row.space == "parameters":
        for name, value in given.items():
            if value is not None:
                raise InputError(
                    f"{name} is for methods that explore in action space; {row.name} searches "
                    "parameters, and sees only returns."
                )
        return None
    if horizon is None:
        raise InputError(
            f"{row.name} explores in action space: give `horizon`, the steps of an episode."
        )
    count = check_count("actions", 1 if actions is None else actions)
    if dim % count:
        raise InputError(f"dim must be features times actions, got {dim} with {count} actions.")
    return Episode(
        actions=count,
        horizon=check_count("horizon", horizon),
        discount=check_between("discount", 1.0 if discount is None else discount, 0.0, 1.0),
    )


def _shape(row: Method, dim: int, batch: int, capacity: int | None, late: int | None) -> Shape:
    room = DEFAULT_BATCHES if row.window is None else row.window
    blocks = room if capacity is None else -(-capacity // batch)
    if row.window is not None:
        blocks = min(blocks, row.window)
    late = blocks if late is None else late
    overflows = row.window is None or blocks < row.window
    weighted = row.weighting != "none"  # without weights no proposal but the newest is needed
    proposals = blocks + 1 + late if weighted else 1
    return Shape(dim, batch, blocks, late, proposals, overflows)


@lru_cache(maxsize=256)
def _build(row: Method, shape: Shape, episode: Episode | None, table: bool) -> Search:
    space = (
        parameter_space(shape.dim, row.mirrored)
        if episode is None
        else action_space(shape.dim, episode.actions, episode.horizon, episode.discount)
    )
    discount = 1.0 if episode is None else episode.discount
    estimator = estimator_of(row, space.family, discount)
    keep = "own" if row.weighting != "balance" else "table" if table else "running"
    compiled_tell = jax.jit(partial(_tell, row, space, estimator, shape))
    compiled_draw = jax.jit(lambda key, rho: space.family.draw(key, rho, shape.batch))
    drawn: list[Callable[[], Any]] = [lambda: None]  # the last theta drawn, while it lives

    def init(key: Array, mean: Any = None, std: Any = 1.0) -> SearchState:
        """The start; `mean` and `std` numbers or `[D]`, a mean of None drawn from N(0, I).

        In action space they are mu and sigma, `std` a number or `[A]`.
        """
        return _init(row, space, shape, keep, key, mean, std)

    def ask(key: Array, state: SearchState) -> tuple[Any, SearchState]:
        """Parameters `[N, D]` to roll out, and the state; in action space, `Episodes`."""
        with _precision_of(state):
            theta = compiled_draw(key, state.rho)
        if isinstance(theta, Array) and not is_traced(theta):
            drawn[0] = ref(theta)
        return theta, state

    def tell(
        key: Array, state: SearchState, theta: Any, returns: Any = None, proposal: Any = None
    ) -> tuple[SearchState, SearchInfo]:
        """The state after one move, and what the move was made of.

        A return that is not finite is a failed rollout: masked and counted. `proposal [N]` is the
        number of the proposal that drew each theta, `state.moves` when it was asked for (default:
        the newest). Under mirrored sampling a pair is told side by side, as it was asked. In action
        space `theta` is a `Trajectory` with leading axis `[N]`, and holds the returns: one with a
        number that is not finite has failed.
        """
        space.check(shape.batch, theta, returns)
        _check_proposal(shape, state, proposal)
        fresh = drawn[0]() is theta  # what `ask` has just drawn is finite, and cannot have changed
        if episode is None and not fresh:
            check_finite("`tell(theta=...)`", theta)
        if keep == "running" and not is_traced(state.moves):
            _check_room(shape, int(state.moves))
        with _precision_of(state):
            told = space.as_arrays(theta)
            others = (x if x is None else jnp.asarray(x) for x in (returns, proposal))
            return compiled_tell(key, state, told, *others)

    def estimate(rho: Rho, archive: Archive) -> Estimate:
        """What the samples of `state.archive` say about any rho."""
        if shape.blocks == 1:
            raise InputError(
                f"{row.name} keeps no samples between moves, so there is nothing to estimate from: "
                "use a method that reuses, or `recoup.estimate`."
            )
        return estimator(rho, archive)

    capacity = shape.blocks * shape.batch
    return Search(init, ask, tell, estimate, row, shape.dim, shape.batch, capacity)


def _precision_of(state: SearchState) -> AbstractContextManager[Any]:
    """float64 for a state that was made in float64, wherever it is used."""
    double = state.rho.eta.dtype == jnp.float64 and not is_traced(state.rho)
    return jax.enable_x64(True) if double else nullcontext()


def _init(
    row: Method, space: Space, shape: Shape, keep: str, key: Array, mean: Any, std: Any
) -> SearchState:
    check_key("`init(key=...)`", key)
    dtype = jnp.result_type(float)
    if mean is None:
        mean = jax.random.normal(key, (space.means,), dtype)
    check_vector("`init(mean=...)`", mean, space.means)
    check_vector("`init(std=...)`", std, space.stds, "A" if row.space == "actions" else "D")
    with np.errstate(over="ignore"):  # what does not fit the type is caught below
        rho = Rho(
            jnp.broadcast_to(jnp.asarray(mean, dtype), (space.means,)),
            jnp.broadcast_to(jnp.asarray(std, dtype), (space.stds,)),
        )
    check_finite("`init(mean=...)`", rho.eta)
    check_stds("`init(std=...)`", rho.tau)
    archive = archives.empty(
        rho,
        space.empty(dtype),
        blocks=shape.blocks,
        batch=shape.batch,
        proposals=shape.proposals,
        keep=keep,
    )
    moves, dropped = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)  # apart: may be donated
    return SearchState(rho, archive, update_of(row).init(rho), moves, dropped)


def _tell(
    row: Method,
    space: Space,
    estimator: Estimator,
    shape: Shape,
    key: Array,
    state: SearchState,
    told: Any,
    returns: Array | None,
    proposal: Array | None,
) -> tuple[SearchState, SearchInfo]:
    samples, returns, failed = space.receive(told, returns, state.rho.eta.dtype)
    stale, drawn_by = _drawn_by(shape, state.moves, returns, proposal)
    if shape.blocks > 1:  # what is kept must be finite; what is not kept does no lasting harm
        samples, failed = without_failed(samples, failed)
    archive = archives.add_batch(
        space.family,
        state.archive,
        block=state.moves % shape.blocks,
        newest=state.moves % shape.proposals,
        samples=samples,
        returns=returns,
        valid=~failed & ~stale,
        drawn_by=drawn_by,
    )
    rho, memory, at_rho = update_of(row).step(
        lambda rho: estimator(rho, archive), state.rho, state.update
    )
    moves = state.moves + 1
    dropped = state.dropped + (shape.overflows & (moves > shape.blocks))
    kl = space.family.divergence(rho, state.rho, samples, ~failed)
    info = _info(at_rho, failed, stale, dropped, kl)
    archive = archives.add_proposal(archive, moves % shape.proposals, rho)
    if shape.blocks == 1:
        archive = archive._replace(batches=None)
    return SearchState(rho, archive, memory, moves, dropped), info


def _drawn_by(
    shape: Shape, newest: Array, returns: Array, proposal: Array | None
) -> tuple[Array, Array | None]:
    """Which results are too late to be remembered `[N]`, and the slots of their proposals `[N]`."""
    if proposal is None:
        return jnp.zeros(returns.shape, bool), None
    lag = newest - proposal
    unknown = (proposal < 0) | (lag < 0) | (lag > shape.late)
    return unknown, (proposal % shape.proposals).astype(jnp.int32)


def _info(at_rho: Estimate, failed: Array, stale: Array, dropped: Array, kl: Array) -> SearchInfo:
    return SearchInfo(
        objective=at_rho.objective,
        objective_stderr=at_rho.objective_stderr,
        ess=at_rho.ess,
        max_weight=at_rho.max_weight,
        weights=at_rho.weights,
        baseline=at_rho.baseline,
        samples=at_rho.samples.astype(jnp.int32),
        failed=jnp.sum(failed, dtype=jnp.int32),
        stale=jnp.sum(stale, dtype=jnp.int32),
        dropped=dropped,
        kl=kl,
        flatten=at_rho.flatten,
    )


def _check_proposal(shape: Shape, state: SearchState, proposal: Any) -> None:
    if proposal is None:
        return
    check_shape("`tell(proposal=...)`", proposal, "[N]", (shape.batch,))
    if not is_traced(proposal, state.moves):
        _check_asked(proposal, int(state.moves))


def _check_room(shape: Shape, moves: int) -> None:
    if moves >= shape.blocks:
        raise InputError(
            f"the archive of {shape.blocks * shape.batch} samples is full, and cannot drop a batch "
            "under `table=False`: make the search with a larger `capacity`, or with `table=True`."
        )


def _check_asked(proposal: Any, newest: int) -> None:
    numbers = jnp.asarray(proposal)
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise InputError(f"`tell(proposal=...)` must be whole numbers, got {numbers.dtype}.")
    if bool(jnp.any((numbers < 0) | (numbers > newest))):
        raise InputError(
            f"`tell(proposal=...)` must lie in 0..{newest}, the newest proposal; got "
            f"{numbers.tolist()}."
        )
