"""Error sentences, or how they begin, that tests of several files wait for; each stands here once.

They are patterns of `re`, as `pytest.raises(match=...)` takes them. What one file alone waits for
stands there; `tests/test_index.py` finds a sentence that two files have written.
"""

# files of studies
EXISTS = "exists already"
MADE_WITH_PARAMS = "was made with params"
NO_STUDY_IN = "there is no study in"
NO_STUDY_FILE = "is not a study file"
NO_RUN = "is a study of its own, not that of a run"
CLOSED = "was closed: open it again"
FULL = "is full: nothing was changed"
FILE_GONE = "the log of a study whose file .* is gone"
FOREIGN_SQL = "SQL that recoup did not write"
DAMAGED = "is damaged"
ANOTHER_STRUCTURE = "has another structure"
NOT_STORED = "which a file cannot hold"

# runs, tasks and policies
AT_WORK = "another process is at work"
ANOTHER_POLICY = "the same theta is another policy"
GIVE_POLICY = "give it again with policy="
IN_ACTIONS = "explore in action space"
TORCH_IN_JAX = "PyTorch cannot be rolled out in JAX"

# samples
NO_ARRAYS = "cannot be read as NumPy arrays"
SAMPLES_THERE = "all of these samples are in the study"
NOTHING_IMPORTED = "in the study already: nothing was imported"
