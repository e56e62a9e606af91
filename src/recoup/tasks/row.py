"""A task as a row of the registry."""

from dataclasses import dataclass, field

from recoup.core.types import Plain


@dataclass(frozen=True)
class TaskRow:
    """A task's name and the settings for it: the paper's, where it is the paper's."""

    name: str
    summary: str
    problem: str  # module:factory of what the task is about; the factory takes the options
    horizon: int
    batch: int
    env_id: str
    env: str = "recoup.tasks.gym_envs:ModelEnv"  # module:class
    task: str = "recoup.tasks.models:task_of"  # module:function that makes the `Task` of it
    discount: float = 1.0
    epsilon: float = 0.1
    test_episodes: int = 100
    options: Plain = field(default_factory=dict)  # that make it this task
    packages: tuple[str, ...] = ()  # that it needs beside ours
    trace: str | None = None  # module:function that measures distance and cost along episodes
    mean: float = 0.0  # a search starts at this plus N(0, I) ...
    drawn: bool = True  # ... or, where it is not drawn, at this
    std: float = 1.0  # with these standard deviations
    random: bool = True  # whether two episodes of one policy differ
