"""Factors of matrices and systems of equations, by NumPy or JAX; and the order of LAPACK's calls.

From jaxlib 0.10.0 on a call of LAPACK on a processor hands its work to threads of XLA's pool, and
occupies one of them until that is done. XLA may start two calls at once where neither needs what
the other finds. On two cores nobody is left to do their work, and the program stops for good: seen
with 0.10. With 0.11.0, 0.11.1, 0.11.2 and 0.12.0 on two cores 84 programs ended without turns
(2026-11-18), and JAX writes loops in another way there: they take none. JAX has no report of it
that we know of; https://github.com/jax-ml/jax/issues/39292 is of the same threads.

So a program is compiled `in_turns`: each of its calls waits for the one before. No equation has to
know of it, and none of a user's.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, reduce, wraps
from typing import TYPE_CHECKING

import numpy as np

from recoup.checks import is_traced
from recoup.core.arrays import Array, Out
from recoup.core.types import Namespace, Pytree

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

ROWS_AT_ONCE = 32  # rows of a triangular system that are solved together
FIRST, FIXED = (0, 10, 0), (0, 11, 0)  # jaxlib whose calls need turns, and that needs them no more
CALLS = {  # primitives of JAX that call LAPACK
    *("cholesky", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu"),
    *("ormqr", "qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve"),
}


def cholesky(xp: Namespace, matrix: Array) -> Array:
    """The lower factor; not a number where there is none."""
    if xp is not np:
        return xp.linalg.cholesky(matrix)
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


def lower_of(xp: Namespace, matrix: Array) -> Array:
    """The lower triangular L, its diagonal positive, with L L^T = A A^T of a matrix A `[D, D]`.

    A A^T itself is never made: it has half as many digits.
    """
    upper = xp.linalg.qr(matrix.T, mode="r")
    return (upper * xp.where(xp.diagonal(upper) < 0, -1.0, 1.0)[:, None]).T


def solve_lower(xp: Namespace, factor: Array, b: Array, transposed: bool = False) -> Array:
    """x of factor x = b, or of factor^T x = b, for a lower triangular factor."""
    if xp is np:
        return _solved(factor, b, transposed)
    from jax.scipy.linalg import solve_triangular

    return solve_triangular(factor, b, lower=True, trans="T" if transposed else "N")


def _solved(factor: np.ndarray, b: np.ndarray, transposed: bool) -> np.ndarray:
    """x of L x = b in NumPy, some rows at a time: first to last, or back for L^T if `transposed`.

    SciPy has it, and takes longer to import than a move of a study takes.
    """
    x = np.array(b, np.result_type(factor, b, 1.0))
    matrix, starts = factor.T if transposed else factor, range(0, len(x), ROWS_AT_ONCE)
    for start in reversed(starts) if transposed else starts:
        rows = slice(start, start + ROWS_AT_ONCE)
        known = slice(rows.stop, None) if transposed else slice(start)
        inverse = inverted(factor[rows, rows])
        rest = x[rows] - matrix[rows, known] @ x[known] if len(x[known]) else x[rows]
        x[rows] = (inverse.T if transposed else inverse) @ rest
    return x


def inverted(factor: np.ndarray) -> np.ndarray:
    """The inverse of a lower triangular factor `[n, n]`: of its halves, and of what is below.

    NumPy inverts an upper triangular matrix without a swap: it is its own LU decomposition.
    """
    n = len(factor)
    if n <= ROWS_AT_ONCE:
        return np.linalg.inv(np.where(_upper(n), factor.T, 0.0)).T
    half, found = n // 2, np.zeros_like(factor)
    first, last = inverted(factor[:half, :half]), inverted(factor[half:, half:])
    found[:half, :half], found[half:, half:] = first, last
    found[half:, :half] = -last @ (factor[half:, :half] @ first)
    return found


@cache
def _upper(n: int) -> np.ndarray:
    """Which places of a matrix `[n, n]` are not below its diagonal."""
    return np.triu(np.ones((n, n), bool))


def in_turns(function: Callable[..., Out]) -> Callable[..., Out]:
    """`function` of arrays, for `jax.jit`: no two of its calls of LAPACK run at once.

    It is traced, and its equations are then made one after the other. One that calls LAPACK gets
    what it is given once all numbers of the call before it are known.
    """
    import jax
    from jaxlib.version import __version__ as version

    if not FIRST <= tuple(map(int, re.findall(r"\d+", version)[:3])) < FIXED:
        return function

    @wraps(function)
    def ordered(*args: Pytree) -> Out:
        given = jax.tree.leaves(args)
        if not is_traced(*given):  # under `jax.disable_jit`, where each call is a program
            return function(*args)
        program, like = jax.make_jaxpr(function, return_shape=True)(*args)
        found, _ = _run(program, given, None)
        return jax.tree.unflatten(jax.tree.structure(like), found)

    return ordered


def _run(
    program: "ClosedJaxpr", args: Sequence[Array], never: Array | None
) -> tuple[list[Array], Array | None]:
    """What a program gives, its calls in turns; `never` is known once all calls before it are."""
    from jax.extend.core import Literal

    def value(atom: "Var | Literal") -> Array:
        return atom.val if isinstance(atom, Literal) else known[atom]

    inner = program.jaxpr
    known = dict(zip([*inner.constvars, *inner.invars], [*program.consts, *args], strict=True))
    for equation in inner.eqns:
        given = [value(atom) for atom in equation.invars]
        if not _calls(equation):
            found = _bound(equation, given)
        elif equation.primitive.name == "jit":
            found, never = _run(equation.params["jaxpr"], given, never)
        else:
            found = _after(equation, given, never)
            never = _known_with(found)
        known.update(zip(equation.outvars, found, strict=True))
    return [value(atom) for atom in inner.outvars], never


def _calls(equation: "JaxprEqn") -> bool:
    """Whether LAPACK is called by an equation, or inside the bodies that it has."""
    from jax.extend.core import jaxprs_in_params

    inside = (one for body in jaxprs_in_params(equation.params) for one in body.eqns)
    return equation.primitive.name in CALLS or any(map(_calls, inside))


def _bound(equation: "JaxprEqn", given: list[Array], **params: object) -> list[Array]:
    primitive = equation.primitive
    with equation.ctx.manager:
        found = primitive.bind(*given, **primitive.get_bind_params({**equation.params, **params}))
    return found if primitive.multiple_results else [found]


def _after(equation: "JaxprEqn", given: list[Array], never: Array | None) -> list[Array]:
    """What an equation gives that calls LAPACK, after the calls before it.

    Bodies of loops and branches take `never` as their first constant, so that nothing which goes
    into a loop is written anew: only the matrices that are factorised there.
    """
    import jax.numpy as jnp

    params = equation.params
    constant = jnp.asarray(False) if never is None else never
    match equation.primitive.name:
        case "while":
            at = params["cond_nconsts"]
            body = {"body_nconsts": params["body_nconsts"] + 1}
            body["body_jaxpr"] = _with_constant(params["body_jaxpr"])
        case "scan":
            at, body = 0, {"num_consts": params["num_consts"] + 1}
            body["jaxpr"] = _with_constant(params["jaxpr"])
            if "linear" in params:  # not in every version
                body["linear"] = (False, *params["linear"])
        case "cond":
            at, body = 1, {"branches": tuple(map(_with_constant, params["branches"]))}
        case _:
            return _bound(equation, given if never is None else _behind(given, never))
    return _bound(equation, [*given[:at], constant, *given[at:]], **body)


def _with_constant(body: "ClosedJaxpr") -> "ClosedJaxpr":
    """A body of a loop or branch in turns, that takes `never` before what it took."""
    import jax

    def ordered(never: Array, *args: Array) -> list[Array]:
        return _run(body, args, never)[0]

    like = (jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in body.in_avals)
    return jax.make_jaxpr(ordered)(jax.ShapeDtypeStruct((), bool), *like)


def _behind(given: list[Array], never: Array) -> list[Array]:
    """Matrices as they are, but not known before `never` is; only numbers are factorised."""
    import jax.numpy as jnp

    def behind(x: Array) -> Array:
        matrix = jnp.ndim(x) > 1 and jnp.issubdtype(x.dtype, jnp.inexact)
        return jnp.where(never, jnp.zeros((), x.dtype), x) if matrix else x

    return [behind(x) for x in given]


def _known_with(found: list[Array]) -> Array:
    """A scalar that is never true, and not known before the numbers that were found.

    No number is less and more than zero, but no compiler looks for that; XLA removes an
    `optimization_barrier` on a processor before it decides what may run at once.
    """
    import jax.numpy as jnp
    from jax.dtypes import extended

    numbers = (x for x in found if x.size and not jnp.issubdtype(x.dtype, extended))
    first = (jnp.real(jnp.ravel(x)[0]).astype(float) for x in numbers)
    return reduce(jnp.logical_or, [(one < 0) & (one > 0) for one in first], jnp.asarray(False))
