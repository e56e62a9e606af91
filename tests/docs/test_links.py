"""`make links` lists every link to elsewhere, and says which of them do not answer."""

import sys

import pytest
from sites import DOCS

sys.path.insert(0, str(DOCS / "ext"))

from links import main

PAGE = """# A page
[one](https://example.org/a), <https://example.org/b>.

```
curl https://example.org/in-code
```
[again](https://example.org/a); http://localhost:8765/ and [here](other.md)
"""


@pytest.mark.parametrize(("wrong", "count"), [("", 0), ("404 Not Found", 1)])
def test_links_are_asked_once_and_listed_with_their_lines(tmp_path, capsys, wrong, count):
    (tmp_path / "page.md").write_text(PAGE)
    asked = []

    def ask(address):
        asked.append(address)
        return wrong if address.endswith("b") else ""

    assert main([tmp_path], ask) == count
    assert asked == ["https://example.org/a", "https://example.org/b"]
    places = [line.rpartition("page.md:")[2] for line in capsys.readouterr().out.splitlines()]
    assert places == [
        "2: https://example.org/a",
        f"2: https://example.org/b {wrong}".rstrip(),
        "7: https://example.org/a",
        f"3 links to 2 addresses; {count} did not answer",
    ]
