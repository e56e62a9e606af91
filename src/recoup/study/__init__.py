"""The study: ask and tell by hand, days apart, on one file that loses nothing.

`study.py` is the door; `reader/opened.py` the study as everything here reads it. May import
`engine`, `core` and `store`. Asking, telling, and the moves and judgements of small studies need
no JAX (`moves/uncompiled.py`); others import it (`moves/compiled.py`).
"""
