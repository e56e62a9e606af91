"""Policies: how parameters and an observation become an action.

A *network* (`networks.py`, or `adapters.py` for those of other libraries) makes numbers of numbers;
`spaces.py` makes the first of an observation, and an action of the second; `policy.py` puts them
together; `described.py` says the whole in plain JSON, so that a file can hold it, and `files.py`
saves what was learned. Nothing here knows of tasks. Networks run in NumPy and in JAX alike.
"""
