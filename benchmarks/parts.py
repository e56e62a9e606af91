"""A benchmark of two parts: `python -m benchmarks.NAME [STUDIES [TASK ...|held]]`."""

import sys


def in_parts(main, held, studies):
    """`main` on the tasks that are named, `held` where that is the name; both where none is."""
    wanted, named = int(sys.argv[1]) if len(sys.argv) > 1 else studies, sys.argv[2:]
    if named != ["held"]:
        main(wanted, named)
    if named in ([], ["held"]):
        held(wanted)
