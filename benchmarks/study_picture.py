"""The picture of docs/do/diagnostics.md: the study of the pages before it, played again.

python -m benchmarks.study_picture docs/study.png
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "do" / "diagnostics.md"  # its commands draw robot.png


def main(path):
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    from blocks import walk_of
    from playing import played

    with TemporaryDirectory() as folder:
        for page in walk_of(PAGE):
            wrong = list(played(page, Path(folder)))
            if wrong:
                sys.exit("\n".join(wrong))
        shutil.copy(Path(folder) / "robot.png", path)


if __name__ == "__main__":
    main(sys.argv[1])
