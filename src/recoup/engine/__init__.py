"""Wiring: the table of methods, what its words mean, the one move, `search` and `estimate`.

Words that choose end here, and no equation begins here.
"""
