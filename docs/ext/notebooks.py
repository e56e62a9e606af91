"""Notebooks: the line where a cell failed, and where what was made is kept."""

import re
from pathlib import Path

from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.util import logging

LOG = logging.getLogger(__name__)
CELL = re.compile(r"-{18}\n(.*?)\n-{18}\n", re.S)
IN_CELL = re.compile(r"Cell In\[\d+\], line (\d+)")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def place(text, traceback):
    """The line of `text` at which its cell failed, and the error in its own words."""
    traceback = COLOUR.sub("", traceback)
    cell, inside = CELL.search(traceback), IN_CELL.search(traceback)
    start = text.find(cell[1]) if cell else -1
    line = text.count("\n", 0, start) + int(inside[1]) if start >= 0 and inside else None
    return line, traceback.strip().splitlines()[-1]


def named(app, doctree):
    """Warns of the cell that failed, at its line."""
    docname = app.env.docname
    done = NbMetadataCollector.get_exec_data(app.env, docname)
    if done and not done["succeeded"]:
        source = app.env.doc2path(docname)
        line, words = place(source.read_text(), done["traceback"] or done["error"] or "")
        LOG.warning("a cell of the notebook fails: %s", words, location=(docname, line))


def beside(app):
    """Keeps pictures and executed notebooks beside the doctrees, and not beside the site."""
    here = {"output_folder": str(Path(app.doctreedir) / "notebooks")}
    app.env.mystnb_config = app.env.mystnb_config.copy(**here)


def setup(app):
    app.connect("builder-inited", beside, priority=900)  # MyST-NB has set its own before
    app.connect("doctree-read", named)
    return {"parallel_read_safe": True}
