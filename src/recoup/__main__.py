"""`python -m recoup`."""

from recoup.cli import main

main()
