"""Times as people read them: a date where it is not today, how long ago, how long still."""

from datetime import datetime

UNITS = ((86400.0, 2, "d"), (3600.0, 2, "h"), (60.0, 1, "min"))  # in seconds; used from so many on
UNKNOWN = "no date"


def moment(at: float | None) -> datetime | None:
    """A time, in seconds since 1970, on the clock of this machine; None where it is no date."""
    try:
        return None if at is None else datetime.fromtimestamp(at).astimezone()
    except (OverflowError, OSError, ValueError):
        return None


def when(at: float | None, now: float) -> str:
    """A time in local time: of today the hour and the minute, of another day its date before them.

    A time of today and one of another day cannot be taken for each other.
    """
    then, today = moment(at), moment(now)
    if then is None or today is None:
        return UNKNOWN
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def in_full(at: float | None) -> str | None:
    """A time for programs: ISO 8601, to the second, with how far local time is from UTC."""
    then = moment(at)
    return None if then is None else then.isoformat(timespec="seconds")


def ago(seconds: float) -> str:
    """How long ago something was."""
    return "just now" if seconds < 60 else f"{span(seconds)} ago"


def span(seconds: float) -> str:
    """A time in whole units; of more than three years it is enough to say so."""
    if seconds > 1e8:
        return "years"
    for size, least, unit in UNITS:
        if seconds >= least * size:
            return f"{int(seconds / size)} {unit}"
    return "under a minute"
