"""Tasks: what they are, their policies and environments, and the engines that roll them out.

A task knows nothing of searches or studies: it turns trials into outcomes.
"""
