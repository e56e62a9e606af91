"""Estimates, steps and judgements in NumPy, of archives so small that compiling costs more.

A study by hand tells one result and ends: a compiler would take seconds for what takes
milliseconds. Every function here has the name and the meaning of the one in `core` that says where
its equation comes from, for the diagonal Gaussian and without padding; tests hold the two together
to 1e-12. Nothing here imports JAX.
"""
