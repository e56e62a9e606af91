"""What figures are printed by."""

import os

# Processes that are started keep byte code, as those of users do: without, each compiles all anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
