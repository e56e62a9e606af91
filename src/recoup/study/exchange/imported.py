"""What an import has brought, and how that is said."""

from collections.abc import Sequence
from typing import NamedTuple

from recoup.study.reader.opened import Opened
from recoup.study.space.goals import MAXIMIZE, MINIMIZE


class Imported(NamedTuple):
    """What was imported, and what it is worth.

    `Study.import_samples` gives it.

    >>> found = study.import_samples([[20, 0.5]], [8.7], mean=[25, 0.6], std=0.5)
    >>> found.samples, found.failed, found.fitted
    (1, 0, False)
    """

    samples: int  # those with a return
    failed: int  # those that were rolled out and have none
    skipped: int  # rows of which neither is known, or not what drew them
    again: int  # those that were in the study already
    proposals: int  # distributions that drew them
    fitted: bool  # whether their proposal had to be guessed from the samples
    ess: float  # at the newest distribution
    words: str  # what that means
    differ: int = 0  # of those that were there: with another result
    amend: tuple[int, ...] = ()  # the trials here that they are of
    drop: tuple[int, ...] = ()  # trials that count here, and were dropped where they come from
    dropped: int = 0  # samples that were left out, since they count for nothing there
    anew: int = 0  # of those imported: other rollouts of thetas that were there
    alike: int = 0  # of those that were there: by theta and result, of another study
    noted: int = 0  # of those imported: with what was written down about them


def turned_words(study: Opened) -> str:
    """That signs were changed, and how they are kept."""
    here = study.goal
    there = MAXIMIZE if here is MINIMIZE else MINIMIZE
    return (
        f"They were told as {there.nouns} ({there.better}): each is the negative here, where "
        f"{here.better}. Should the numbers be {here.nouns} as they are, `fork` their study with "
        f"--{here.word} and import the fork."
    )


def as_told_words(study: Opened) -> str:
    """That numbers were taken as they are, though they were told the other way round."""
    here = study.goal
    there = MAXIMIZE if here is MINIMIZE else MINIMIZE
    return (
        f"They were told as {there.nouns}, and are taken as {here.nouns} as they are: so are those "
        "of the same rollouts that are here already."
    )


def imported_words(study: Opened, found: Imported, uncorrelated: bool) -> str:
    """What was imported and what it is worth, in sentences."""
    several = "s" if found.proposals > 1 else ""
    how = (
        "from a proposal fitted to them, so that their weights are a guess"
        if found.fitted
        else f"from {found.proposals} proposal{several}"
    )
    how += ", taken as uncorrelated" if uncorrelated else ""
    one = found.samples + found.failed == 1
    unused = ""
    if study.method.weighting == "none":
        which = "it" if one else "them"
        unused = (
            f" {study.method.name} has no weights: its moves leave {which} out, `evaluate` does "
            "not."
        )
    return (
        f"{found.samples} sample{'' if found.samples == 1 else 's'} imported {how}{_left(found)}. "
        f"At the newest distribution {'it is' if one else 'they are'} worth {found.ess:.1f} fresh "
        f"rollouts.{unused}{to_do(study, found.amend, found.drop)}"
    )


def _left(found: Imported) -> str:
    """What came beside the samples, and what did not, as parts of a sentence."""
    left = f", with {found.failed} that failed" if found.failed else ""
    if found.noted:
        left += f"; what was written down about {found.noted} of them came along"
    if found.skipped:
        which = "without a return, or without what drew "
        which += f"{'it' if found.skipped == 1 else 'them'}, {_were(found.skipped)} left out"
        left += f"; {found.skipped} {which}"
    if found.dropped:
        were = _were(found.dropped)
        left += f"; {found.dropped} that {were} dropped there {were} left out"
    left += f"; {found.again} {_were(found.again)} in the study already" if found.again else ""
    if found.alike:
        left += f" ({found.alike} by the same theta and result, though of another study)"
    if found.anew == 1:
        left += "; 1 of the new ones is another rollout of a theta that was there"
    elif found.anew:
        left += f"; {found.anew} of the new ones are other rollouts of thetas that were there"
    return left


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def to_do(study: Opened, differ: Sequence[int], gone: Sequence[int]) -> str:
    """What to do about results that are others where they come from, or none; in sentences."""
    said, amend = "", f"`recoup study amend {study.where}"
    if differ:
        said += (
            f" {_trials(differ)} has another result there, which stays as it is here: {amend} ID "
            "RETURN` puts it right."
        )
    if gone:
        said += (
            f" {_trials(gone)} was dropped there and counts here still: {amend} ID --drop WHY` "
            "takes it out."
        )
    return said


def _trials(ids: Sequence[int]) -> str:
    """Some trials by name, as the beginning of a sentence about each."""
    named = ", ".join(map(str, ids))
    return f"Trial {named}" if len(ids) == 1 else f"Each of the trials {named}"
