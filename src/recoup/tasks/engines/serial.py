"""Trials one after the other, in this process."""

from recoup.tasks.engines.attempt import Raised, attempt, closed, theirs
from recoup.tasks.engines.engine import Broken, Build, Job, Outcome, Roller


class Serial:
    """Rolls a trial out while it is waited for; what is built is built once."""

    slots = 1

    def __init__(self, build: Build) -> None:
        self._build = build
        self._roller: Roller | None = None
        self._jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        """Takes a trial."""
        self._jobs.append(job)

    def wait(self, seconds: float | None = None) -> list[Outcome]:
        """Rolls out what was submitted."""
        if self._roller is None:
            self._roller = built(self._build)
        jobs, self._jobs = self._jobs, []
        return [attempt(self._roller, job) for job in jobs]

    def close(self) -> None:
        """Closes the environment."""
        if self._roller is not None:
            closed(self._roller.close)
            self._roller = None


def built(build: Build) -> Roller:
    """What rolls out, or one sentence about why it cannot be built."""
    try:
        with theirs():
            return build()
    except Raised as wrong:
        raise Broken(f"the task cannot be built: {wrong.words}", wrong.trace) from wrong.__cause__
