"""Search distributions: drawing, densities, scores, divergences, and how a rho is stored.

`rho.py` holds the records of each family and needs no JAX; `family.py` says what a family must
offer; one file for each of them. Nothing outside this folder looks inside a rho.
"""
