"""Search distributions: drawing, densities, scores, divergences, and how a rho is stored.

`family.py` says what a family must offer; one file for each of ours holds the record of its rho and
its closed forms, and `table.py` has a row for each. Nothing outside this folder looks inside a rho.
"""
