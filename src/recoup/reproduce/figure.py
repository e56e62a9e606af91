"""What a figure of the paper is made of: jobs, data, claims, a picture."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure as Picture

from recoup.outputs import Over
from recoup.reproduce.claims import Claim, Said
from recoup.reproduce.jobs import Arrays, FigureJob
from recoup.reproduce.sizes import Size


class Figure(NamedTuple):
    """One figure: what to measure, what it says, and how it is shown."""

    name: str
    paper: str  # where it stands in the paper
    title: str
    caption: str
    jobs: Callable[[Size], list[FigureJob]]
    collect: Callable[[Size, dict[str, Arrays]], Arrays]  # the results of the jobs by name -> data
    draw: Callable[[Arrays], Picture]
    said: tuple[Said, ...] = ()
    section: str = ""  # of the paper, where that is said
    film: Callable[[Arrays, Path, Over], None] | None = None  # writes a video to a path

    def claims(self, data: Arrays) -> list[Claim]:
        """What the paper says of the figure, measured."""
        return [row.judged(data, self.section) for row in self.said]
