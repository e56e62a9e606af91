"""The distribution that a new study starts from."""

from recoup.core.types import Settings
from recoup.engine.methods import family_name
from recoup.engine.plain import can_move, family_of
from recoup.store.rows import START, Proposal
from recoup.study.moves.memory import check_first
from recoup.study.reader.blocks import start_block
from recoup.study.reader.settings import method_of


def first_proposal(settings: Settings, parts: Settings | None = None) -> Proposal:
    """The distribution that a study of these settings starts from."""
    row = method_of(settings, parts)
    family = family_name(row)
    numbers = start_block(family, row, settings["mean"], settings["std"])
    if row.way.mover and can_move(row, 0, settings["dim"]):
        check_first(row, family_of(row).unpacked(numbers, settings["dim"]))
    elif row.way.mover or not isinstance(row.update, str):
        from recoup.study.moves.compiled import check_memory  # needs JAX, as such a rule does

        check_memory(row, numbers, settings["dim"])
    return Proposal(0, START, family, numbers)
