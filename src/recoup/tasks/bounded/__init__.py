"""Tasks of a few bounded parameters and noisy trials, in NumPy alone: what most users have.

`bounded_suite` holds the table and the door to it, `bounded_task(name, seed)`.
"""
