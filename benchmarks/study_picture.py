"""The picture of docs/do/diagnostics.md: the study of the pages before it, played again.

python -m benchmarks.study_picture docs/study.png
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from recoup import Study

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
        shows = PngInfo()  # a test holds it to what the page prints
        with Study.open(Path(folder) / "robot.db", read_only=True) as study:
            shows.add_text("shows", " ".join(f"{x:.5g}" for x in study.mean_policy.values()))
        Image.open(Path(folder) / "robot.png").save(path, pnginfo=shows, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
