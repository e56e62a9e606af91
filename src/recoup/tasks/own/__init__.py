"""Tasks of the user's: Gymnasium environments, functions, environments in JAX.

`found.py` makes one of what the user names; `environment.py` and `function.py` roll trials out on
the host, an episode at a time; `jax_envs.py` in JAX, many at a time.
"""
