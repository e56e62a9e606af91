"""Whole runs: train, resume, evaluate, the run directory, its film; and many runs in lock step.

A run is a study that a loop asks and tells, with a rollout engine for a robot.
"""
