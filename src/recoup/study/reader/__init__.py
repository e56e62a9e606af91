"""A study file as it is read: settings, distributions, results as arrays. Nothing here writes."""
