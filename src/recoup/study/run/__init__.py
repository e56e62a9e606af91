"""What the study of a run holds of that run: its end, and the files beside it."""
