"""Methods side by side: the same starts, the same noise, the same tests; ours and other libraries'.

`entrants` are the methods, `arenas` the tasks, `side_by_side` has runs of all of them in the one
loop, `run_results` what is kept of every run, `statistics` and `summary` what is said about them.
"""
