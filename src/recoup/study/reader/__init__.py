"""A study file as it is read, never written: settings, distributions, results as arrays."""
