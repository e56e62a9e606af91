"""Results in and out: import, export, forks, and replays under another method."""
