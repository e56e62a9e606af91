"""The study: ask and tell by hand, days apart, on one file that loses nothing.

`study.py` is the door; `opened.py` the study as everything here reads it. May import `engine`,
`core` and `store`. Asking and telling need no JAX: only a move or a judgement imports it.
"""
