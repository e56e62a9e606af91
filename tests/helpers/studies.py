"""Studies that other processes work on, and everything in a file that a search decides."""

import sqlite3

import study_worker
from processes import Forked
from waiting import until


def work(path, results, hold=None, **settings):
    """A process that works on a study until it has so many results, or is killed (`hold`)."""
    errors = path.with_suffix(".errors")
    return Forked(errors, study_worker.work, str(path), results, settings, hold)


def killed_at(path, process, results):
    """Kills a worker once a study has so many results, or soon after; how many it has then."""
    until(lambda: told(path) >= results or process.poll() is not None)
    assert process.poll() is None, process.said()
    process.kill()
    return told(path)


def told(path):
    """How many results a killed worker has left, without touching what it left."""
    if not path.exists():
        return 0
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    (count,) = connection.execute("SELECT COUNT(*) FROM told").fetchone()
    connection.close()
    return count


def content(path):
    """Everything in the file that a run decides."""
    connection = sqlite3.connect(path)
    trials = connection.execute(
        'SELECT asked.id, proposal, theta, seed, status, told.counted, "return", note '
        "FROM asked LEFT JOIN told ON told.id = asked.id ORDER BY asked.id"
    ).fetchall()
    proposals = connection.execute(
        "SELECT moves.id, family, numbers, memory, counted, info FROM moves "
        "JOIN proposals ON proposals.id = moves.proposal ORDER BY moves.id"
    ).fetchall()
    mixture = connection.execute("SELECT * FROM mixture").fetchall()
    connection.close()
    return trials, proposals, mixture
