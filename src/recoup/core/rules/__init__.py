"""Rules that make a whole step of a window of samples, old and new: `recoup` and the classics.

Everything here is written once for NumPy and JAX: `xp` is one of the two, shapes are fixed, and
what is not valid is masked. Points are in the coordinates z of the distribution that moves, so that
it is N(0, I) there; a rule says how its mean moves and how it is stretched, also in z.
"""
