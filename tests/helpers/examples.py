"""The examples of docstrings, each run in a directory of its own after the start of its page."""

import doctest
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

from recoup.study.study import Study

SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@contextmanager
def inside(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


class Page:
    """The start of a page, run once; every example goes on from a copy of what it left."""

    def __init__(self, part, folder, **given):
        self.start = Path(folder, "start")
        self.start.mkdir(parents=True)
        self.names = dict(given)
        with inside(self.start):
            exec(compile(part.start, f"the start of {part.slug}", "exec"), self.names)
        self.kept = {k: v for k, v in self.names.items() if isinstance(v, Study)}
        for study in self.kept.values():
            study.close()

    def failures(self, label, text, folder):
        """What differs when the examples of a docstring are run."""
        folder = Path(folder, label)
        shutil.copytree(self.start, folder)
        with inside(folder):
            names = self.names | {
                k: Study.open(Path(v.store.path).name) for k, v in self.kept.items()
            }
            test = doctest.DocTestParser().get_doctest(text, names, label, None, 0)
            said = []
            runner = doctest.DocTestRunner(verbose=False, optionflags=SAME)
            runner.run(test, out=said.append, clear_globs=False)
            for key in self.kept:
                names[key].close()
        return "".join(said)
