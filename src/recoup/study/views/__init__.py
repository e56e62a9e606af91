"""A study as it is shown: records, lists and plot data for commands, pages and notebooks."""
