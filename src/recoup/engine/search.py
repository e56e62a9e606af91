"""The search: `init`, `ask`, `tell` as pure functions, jit- and vmap-able over many runs.

Longer than others: what is public has its example.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import (
    InputError,
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
from recoup.core.estimators.whole import Estimator
from recoup.core.families.family import draw
from recoup.core.in_short import in_short
from recoup.core.linalg import in_turns
from recoup.core.mixtures import picked
from recoup.core.objective import Estimate
from recoup.core.sweeps import precise
from recoup.core.types import Given, Memory, Rho, Samples
from recoup.engine.composition import Composed, composed
from recoup.engine.episodes import Episode, episode_of
from recoup.engine.info import Info
from recoup.engine.methods import Method, method_row, sized
from recoup.engine.move import move
from recoup.engine.spaces import (
    Space,
    action_space,
    as_array,
    parameter_space,
    without_failed,
)
from recoup.notebooks import facts

DEFAULT_BATCHES = 100  # kept by methods that reuse everything, unless `capacity` says otherwise


class SearchState(NamedTuple):
    """Everything a search knows: the distribution, its archive, its update rule's memory.

    `Search.init` gives it, `Search.tell` the next one.

    >>> state
    SearchState(moves=0, mean=[0, 0], std=[1, 1])
    """

    rho: Rho  # the newest distribution
    archive: Archive  # samples and what drew them
    update: Memory  # the memory of the update rule
    memories: Memory  # [P] that of each proposal, where a move may begin at one before the newest
    moves: Array  # how often the distribution has moved; the number of the newest proposal
    dropped: Array  # batches that a full archive has dropped

    @property
    def mean(self) -> Array:
        """Means of the search distribution `[D]`.

        >>> state.mean.shape
        (2,)
        """
        return self.rho.mean

    @property
    def std(self) -> Array:
        """Standard deviations of the search distribution `[D]`; in action space sigma `[A]`.

        >>> state.std.shape
        (2,)
        """
        return self.rho.std

    def __repr__(self) -> str:
        spread = f"mean={in_short(self.mean)}, std={in_short(self.std)}"
        return f"SearchState(moves={in_short(self.moves)}, {spread})"


class Search(NamedTuple):
    """A search as pure functions, and the settings it was made with.

    `recoup.search` makes it. `init(key, mean=None, std=1.0)` gives the start, `mean` and `std`
    numbers or `[D]`, a mean of None drawn from N(0, I). `ask(key, state)` gives parameters `[N, D]`
    to roll out, and the state. `tell(key, state, theta, returns, proposal=None)` gives the state
    after one move and the `Info` that says what it was made of: a return `[N]` that is not finite
    is a failed rollout, and `proposal [N]` is the number of the proposal that drew each theta,
    `state.moves` when it was asked for (default: the newest). `estimate(rho, state.archive)` is
    what the samples say about any rho, where the method keeps them. All of them may be compiled,
    and mapped over many runs.

    >>> population, state = search.ask(key, state)
    >>> state, info = search.tell(key, state, population, -jnp.sum(population**2, axis=1))
    >>> int(state.moves), int(info.samples)
    (1, 10)
    """

    init: Callable[..., SearchState]
    ask: Callable[[Array, SearchState], tuple[Samples, SearchState]]
    tell: Callable[..., tuple[SearchState, Info]]
    estimate: Estimator  # estimate(rho, state.archive), for any rho
    settings: Method  # of the method
    dim: int  # D
    batch: int  # results that make a move, N
    capacity: int  # samples that the archive holds

    def __repr__(self) -> str:
        parameters = f"{self.dim} parameter{'' if self.dim == 1 else 's'}"
        kept = f"keeps {self.capacity} samples"
        return f"Search({self.settings.name}, {parameters}, batch {self.batch}, {kept})"

    def _repr_html_(self) -> str:
        rows = {"parameters": str(self.dim), "batch": str(self.batch)}
        return facts(
            f"Search by {self.settings.name}",
            {**rows, "samples kept": str(self.capacity), **self.settings.changed},
        )


class Sizes(NamedTuple):
    """The fixed sizes of a search's arrays."""

    dim: int
    batch: int
    blocks: int  # batches kept
    late: int  # proposals that a result may lie behind the newest
    proposals: int  # slots in the ring of proposals
    overflows: bool  # whether a dropped batch is one the method would have kept
    table: bool  # whether balance weights keep every proposal's densities


class SearchParts(NamedTuple):
    """What a search is made of."""

    row: Method
    method: Composed
    space: Space
    sizes: Sizes


def search(
    method: str | Method,
    *,
    dim: int,
    batch: int,
    capacity: int | None = None,
    late: int | None = None,
    table: bool = True,
    horizon: int | None = None,
    actions: int | None = None,
    discount: float | None = None,
    **settings: Given,
) -> Search:
    """A search by `method`, a name or a row of your own, over `dim` parameters.

    `batch` results make a move. `capacity` is the number of samples the archive can hold, rounded
    up to whole batches: a full archive drops its oldest batch and `info.dropped` counts it (by
    default the method's window, or 100 batches for methods that reuse everything). `late` is how
    many proposals a result may lie behind the newest (by default as many as batches are kept).
    `table=False` keeps, for balance weights, only the mixture instead of every proposal's
    densities: O(N') memory, right as long as the archive never drops a batch (a window always keeps
    the table). `settings` replace those of the method's row; `weighting`, `baseline`, `direction`,
    `update` and `family` take a word or an object of the same type.

    A method that explores in action space needs the `horizon` T of an episode, and takes how many
    `actions` A there are (1 unless said; `dim` is F A, features by actions) and the `discount` of
    rewards (1 unless said). `ask` then gives a policy and the seeds of its episodes, `tell` takes a
    `recoup.Trajectory` of arrays with leading axis `[N]` in place of theta and returns, and the
    archive holds `capacity` T (F + A + 1) numbers. The policy's sigma stays above `tau_floor`.

    Raises `InputError` for an unknown method or setting, and for sizes that do not fit together.

    >>> small = recoup.search("recoup", dim=3, batch=6)
    >>> small
    Search(recoup, 3 parameters, batch 6, keeps 108 samples)
    """
    dim, batch = check_count("dim", dim), check_count("batch", batch)
    row = sized(method_row(method, **settings), dim)
    episode = episode_of(row, dim, horizon, actions, discount)
    if row.mirrored and batch % 2:
        raise InputError(f"batch must be even for mirrored sampling, got {batch}.")
    if capacity is not None and check_count("capacity", capacity) < batch:
        raise InputError(f"capacity must hold a batch of {batch}, got {capacity}.")
    if late is not None:
        check_count("late", late, least=0)
    table = check_flag("table", table) or row.window is not None
    return _build(row, _sizes(row, dim, batch, capacity, late, table), episode)


def _sizes(
    row: Method, dim: int, batch: int, capacity: int | None, late: int | None, table: bool
) -> Sizes:
    room = _room(row, dim, batch) if row.window is None else row.window
    blocks = room if capacity is None else -(-capacity // batch)
    if row.window is not None:
        blocks = min(blocks, row.window)
    late = blocks if late is None else late
    overflows = blocks < room if row.way.reach else row.window is None or blocks < room
    proposals = blocks + 1 + late if row.reweighs else 1  # else only the newest is needed
    return Sizes(dim, batch, blocks, late, proposals, overflows, table)


def _room(row: Method, dim: int, batch: int) -> int:
    """Batches that are kept where no window says how many."""
    if row.way.reach is None:
        return DEFAULT_BATCHES
    return -(-max(row.way.reach(dim, batch, None)) // batch)


@lru_cache(maxsize=256)
def _build(row: Method, sizes: Sizes, episode: Episode | None) -> Search:
    space = parameter_space(sizes.dim) if episode is None else action_space(sizes.dim, *episode)
    method = composed(row, 1.0 if episode is None else episode.discount)
    made = SearchParts(row, method, space, sizes)
    compiled_tell = jax.jit(in_turns(precise(partial(_tell, made))))
    compiled_estimate = jax.jit(in_turns(precise(method.estimate)))
    compiled_draw = jax.jit(partial(_drawn, made))

    def init(key: Array, mean: Given = None, std: Given = 1.0) -> SearchState:
        """The start; `mean` and `std` numbers or `[D]`, a mean of None drawn from N(0, I).

        In action space they are mu and sigma, `std` a number or `[A]`.
        """
        return _init(made, key, mean, std)

    def ask(key: Array, state: SearchState) -> tuple[Samples, SearchState]:
        """Parameters `[N, D]` to roll out, and the state; in action space, `Episodes`."""
        with _precision_of(state):
            return compiled_draw(key, state.rho, _repeats(row, state)), state

    def tell(
        key: Array, state: SearchState, theta: Samples, returns: Given = None, proposal: Rho = None
    ) -> tuple[SearchState, Info]:
        """The state after one move, and what the move was made of.

        A return that is not finite is a failed rollout: it counts as drawn, and what is estimated
        is the return given success (or see the setting `failure`). `proposal [N]` is the
        number of the proposal that drew each theta, `state.moves` when it was asked for (default:
        the newest). Under mirrored sampling a pair is told side by side, as it was asked. In action
        space `theta` is a `Trajectory` with leading axis `[N]`, and holds the returns: one with a
        number that is not finite has failed.
        """
        _check_told(made, state, theta, returns, proposal)
        with _precision_of(state):
            told = space.as_arrays(theta)
            others = (x if x is None else as_array(x) for x in (returns, proposal))
            after, info, sound = compiled_tell(key, state, told, *others)
        if episode is None and not is_traced(sound) and not sound:
            check_finite("`tell(theta=...)`", theta)
        return after, info

    def estimate(rho: Rho, archive: Archive) -> Estimate:
        """What the samples of `state.archive` say about any rho."""
        if sizes.blocks == 1:
            raise InputError(
                f"{row.name} keeps no samples between moves, so there is nothing to estimate from: "
                "use a method that reuses, or `recoup.estimate`."
            )
        return compiled_estimate(rho, archive)

    capacity = sizes.blocks * sizes.batch
    return Search(init, ask, tell, estimate, row, sizes.dim, sizes.batch, capacity)


def _repeats(row: Method, state: SearchState) -> Array | None:
    """Whether the next batch is to try its first candidate twice; None: it never is."""
    return None if row.way.repeats is None else row.way.repeats(state.update)


def _drawn(made: SearchParts, key: Array, rho: Rho, repeats: Array | None) -> Samples:
    """The parameters of a batch; the second candidate is the first once more where it `repeats`."""
    row, method, _, sizes = made
    block = row.block(sizes.dim) if method.family.draw is draw else 1
    theta = (
        draw(key, rho, sizes.batch, block=block)
        if block > 1
        else method.family.draw(key, rho, sizes.batch, row.mirrored)
    )
    if repeats is None or sizes.batch == 1:
        return theta
    return theta.at[1].set(jnp.where(repeats, theta[0], theta[1]))


def _precision_of(state: SearchState) -> AbstractContextManager[object]:
    """float64 for a state that was made in float64, wherever it is used."""
    double = state.mean.dtype == jnp.float64 and not is_traced(state.rho)
    return jax.enable_x64(True) if double else nullcontext()


def _keep(made: SearchParts) -> str:
    """Which densities the archive keeps beside those of the own proposals."""
    if not made.method.mixture:
        return "own"
    return "table" if made.sizes.table else "running"


def _init(made: SearchParts, key: Array, mean: Given, std: Given) -> SearchState:
    row, method, space, sizes = made
    check_key("`init(key=...)`", key)
    dtype = jnp.result_type(float)
    if mean is None:
        mean = jax.random.normal(key, (space.means,), dtype)
    check_vector("`init(mean=...)`", mean, space.means)
    check_vector("`init(std=...)`", std, space.stds, "A" if row.space == "actions" else "D")
    with np.errstate(over="ignore"):  # what does not fit the type is caught below
        means = jnp.broadcast_to(jnp.asarray(mean, dtype), (space.means,))
        stds = jnp.broadcast_to(jnp.asarray(std, dtype), (space.stds,))
    check_finite("`init(mean=...)`", means)
    check_stds("`init(std=...)`", stds)
    rho = jax.tree.map(jnp.asarray, method.family.start(means, stds))
    archive = archives.empty(
        rho,
        space.empty(dtype),
        blocks=sizes.blocks,
        batch=sizes.batch,
        proposals=sizes.proposals,
        keep=_keep(made),
    )
    moves, dropped = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)  # apart: may be donated
    memory = jax.tree.map(jnp.asarray, method.init(rho))
    rings = () if row.way.chains else memory
    memories = jax.tree.map(lambda x: jnp.stack([x] * sizes.proposals), rings)
    return SearchState(rho, archive, memory, memories, moves, dropped)


def _tell(
    made: SearchParts,
    key: Array,
    state: SearchState,
    told: Samples,
    returns: Array | None,
    proposal: Array | None,
) -> tuple[SearchState, Info, Array]:
    """The state after a move, what it was made of, and whether every sample told is finite."""
    row, method, space, sizes = made
    samples, returns, no_return = space.receive(told, returns, state.mean.dtype)
    stale, drawn_by = _drawn_by(sizes, state.moves, returns, proposal)
    failed = no_return
    if sizes.blocks > 1:  # a kept sample that is not finite would spoil every later sum
        samples, broken = without_failed(samples, jnp.zeros_like(failed))
        failed |= broken
    archive = archives.add_batch(
        method.family,
        state.archive,
        block=state.moves % sizes.blocks,
        newest=state.moves % sizes.proposals,
        samples=samples,
        returns=jnp.where(failed, jnp.nan, returns),
        told=~stale,
        drawn_by=drawn_by,
    )
    moved, start = archive, (state.rho, state.update)
    if drawn_by is not None and not row.way.chains:
        begun = _begun(sizes, archive.counts, state.moves)
        slot = begun % sizes.proposals
        moved = archive._replace(target=None, since=begun)
        start = picked(archive.proposals, slot), picked(state.memories, slot)
    rho, memory, info, sound = move(method, moved, *start, samples, ~failed)
    sound &= jnp.all(failed == no_return)
    moves = state.moves + 1
    dropped = state.dropped + (sizes.overflows & (moves > sizes.blocks))
    info = info._replace(
        failed=jnp.sum(failed, dtype=jnp.int32),
        stale=jnp.sum(stale, dtype=jnp.int32),
        dropped=dropped,
    )
    archive = archives.add_proposal(archive, moves % sizes.proposals, rho)
    if sizes.blocks == 1:
        archive = archive._replace(batches=None)
    memories = state.memories
    if not row.way.chains:
        slot = moves % sizes.proposals
        memories = jax.tree.map(lambda kept, x: kept.at[slot].set(x), memories, memory)
    return SearchState(rho, archive, memory, memories, moves, dropped), info, sound


def _begun(sizes: Sizes, counts: Array, newest: Array) -> Array:
    """The number of the proposal that a move with late results begins from, as a study's does.

    The newest of which, or of those after it, half a batch of results is known. A method without
    weights remembers the newest alone.
    """
    lags = jnp.arange(min(sizes.late + 1, sizes.proposals))
    there = lags <= newest
    known = jnp.cumsum(jnp.where(there, counts[(newest - lags) % sizes.proposals], 0))
    enough = 2 * known >= sizes.batch
    return newest - jnp.where(jnp.any(enough), jnp.argmax(enough), jnp.sum(there) - 1)


def _drawn_by(
    sizes: Sizes, newest: Array, returns: Array, proposal: Array | None
) -> tuple[Array, Array | None]:
    """Which results are too late to be remembered `[N]`, and the slots of their proposals `[N]`."""
    if proposal is None:
        return jnp.zeros(returns.shape, bool), None
    lag = newest - proposal
    unknown = (proposal < 0) | (lag < 0) | (lag > sizes.late)
    return unknown, (proposal % sizes.proposals).astype(jnp.int32)


def _check_told(
    made: SearchParts, state: SearchState, theta: Samples, returns: Given, proposal: Rho
) -> None:
    """Raises unless what is told has its shapes, and there is room for it."""
    made.space.check(made.sizes.batch, theta, returns)
    if proposal is not None:
        check_shape("`tell(proposal=...)`", proposal, "[N]", (made.sizes.batch,))
        if not is_traced(proposal, state.moves):
            _check_asked(proposal, int(state.moves))
    if _keep(made) == "running" and not is_traced(state.moves):
        _check_room(made.sizes, int(state.moves))


def _check_room(sizes: Sizes, moves: int) -> None:
    if moves >= sizes.blocks:
        raise InputError(
            f"the archive of {sizes.blocks * sizes.batch} samples is full, and cannot drop a batch "
            "under `table=False`: make the search with a larger `capacity`, or with `table=True`."
        )


def _check_asked(proposal: Rho, newest: int) -> None:
    numbers = jnp.asarray(proposal)
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise InputError(f"`tell(proposal=...)` must be whole numbers, got {numbers.dtype}.")
    if bool(jnp.any((numbers < 0) | (numbers > newest))):
        raise InputError(
            f"`tell(proposal=...)` must lie in 0..{newest}, the newest proposal; got "
            f"{numbers.tolist()}."
        )
