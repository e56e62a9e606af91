"""What rolls trials out: this process, other processes of this machine, a Ray cluster.

All keep to one protocol (`engine.py`): a trial is submitted, its outcome comes back some time
later, in any order; one that raises, hangs or is killed comes back as failed, with its reason. When
to ask, to try again and to give up is not decided here but in `runs/schedule.py`. No JAX, so that
workers start fast; `vectorised.py`, for tasks that are rolled out a batch at a time, is the
exception.
"""
