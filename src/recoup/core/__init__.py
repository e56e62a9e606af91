"""The mathematics: families, archive, weights, baselines, directions, estimators, updates, theory.

Pure functions of arrays. No word that chooses an algorithm, no file, no printing: those live in
`engine`, `store` and `cli`.
"""
