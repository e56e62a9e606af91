"""What rollouts that failed are taken to have earned."""

from recoup.core.arrays import Array, namespace


def with_failures(
    returns: Array, valid: Array, failed: Array, failure: str | float
) -> tuple[Array, Array, Array]:
    """Returns with failed samples at the `worst` of them, or at a number; which are valid, failed.

    `censored` leaves them failed: drawn and counted, and worth nothing that is known. So does the
    worst return where there is none.
    """
    if failure == "censored":
        return returns, valid, failed
    xp = namespace(returns)
    worst = xp.min(xp.where(valid, returns, xp.inf), initial=xp.inf)
    value = worst if failure == "worst" else xp.asarray(failure, returns.dtype)
    valued = failed & xp.isfinite(value)
    return xp.where(valued, value, returns), valid | valued, failed & ~valued
