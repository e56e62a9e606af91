"""The estimate as a function of rho: of whole samples, per decision, and by EM.

The only files that know every stage: densities, weights, scores, baseline, gradient.
"""
