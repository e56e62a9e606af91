"""Pictures from arrays alone: learning curves, replays, films.

Draws without a display. Knows nothing of runs or studies, and imports nothing of ours but checks
and outputs.
"""
