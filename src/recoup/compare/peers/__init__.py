"""Methods of other libraries, one small adapter each.

They search x = (theta - mean) / std of the start, so that all of them begin at 0 with standard
deviation 1 (times the setting `sigma`), whatever the scale of a task. A package is imported in the
one file that needs it.
"""
