"""Every block of Python and of a console is run and compared, or says why not in the source."""

import re
import shlex
from pathlib import Path

import pytest
from blocks import blocks, code, pages, walk_of
from playing import played
from program import recoup

ROOT = Path(__file__).parents[2]
ELSEWHERE = {  # page -> kind of block -> the test that runs all of that kind
    "README.md": {"python": "test_readme.py"},
    "docs/do/pure-functions.md": {"python": "test_readme.py"},
    "docs/own-parts.md": {"python": "test_readme.py"},
    "docs/own-tasks.md": {"python": "test_own_tasks_doc.py"},
    "docs/policy-file.md": {"python": "test_policy_file_doc.py"},
    "docs/serve.md": dict.fromkeys(("python", "console"), "test_serve_doc.py"),
}
MADE = ("docs/reference/", "docs/benchmarks/")  # by scripts, whose tests look at them
NOT_RUN = 23  # blocks that say why they are not run: it shrinks, and does not grow


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def ours():
    """The pages whose blocks are played here."""
    return [p for p in pages(ROOT) if name_of(p) not in ELSEWHERE and _runs(p)]


def _runs(page):
    made = name_of(page).startswith(MADE)
    return not made and any(not block.reason for block in code(page))


def ends():
    """The last page of every walk: it runs the ones before it too."""
    walks = {page.resolve(): walk_of(page.resolve()) for page in ours()}
    inside = {page for walk in walks.values() for page in walk[:-1]}
    return [page for page in walks if page not in inside]


@pytest.mark.slow
@pytest.mark.parametrize("page", ends(), ids=name_of)
def test_what_a_page_shows_is_what_comes_out(page, tmp_path):
    wrong = [line for one in walk_of(page) for line in played(one, tmp_path)]
    assert not wrong, "\n".join(wrong)


def test_every_page_is_played_by_one_test():
    walked = [page for end in ends() for page in walk_of(end)]
    assert len(walked) == len(set(walked))
    assert {page.resolve() for page in ours()} <= set(walked)


@pytest.mark.parametrize("page", ELSEWHERE)
def test_a_page_with_a_test_of_its_own_is_read_by_that_test(page):
    for kind, test in ELSEWHERE[page].items():
        assert Path(page).name in (Path(__file__).parent / test).read_text()
        assert any(block.kind == kind for block in code(ROOT / page))


def test_blocks_of_other_kinds_of_such_a_page_say_why_they_are_not_run():
    for page, kinds in ELSEWHERE.items():
        left = [b for b in code(ROOT / page) if b.kind not in kinds and not b.reason]
        assert not left, [f"{page}:{block.line}" for block in left]


def test_every_block_says_what_it_is():
    nameless = [
        f"{name_of(page)}:{block.line}"
        for page in pages(ROOT)
        for block in blocks(page.read_text())
        if not block.kind and not name_of(page).startswith(MADE)
    ]
    assert not nameless  # it could be Python that nothing runs


def silent():
    """Blocks that are not run, with their pages."""
    return [(page, block) for page in pages(ROOT) for block in code(page) if block.reason]


def test_fewer_and_fewer_blocks_are_not_run():
    found = [f"{name_of(page)}:{block.line}: {block.reason}" for page, block in silent()]
    assert len(found) <= NOT_RUN, "\n".join(found)


def commands(block):
    """The commands of ours in a block that is not run."""
    lines = [line.removeprefix("$ ") for line in block.text.replace("\\\n", " ").splitlines()]
    return [shlex.split(x, comments=True)[1:] for x in lines if x.startswith("recoup ")]


def test_the_options_of_commands_that_are_not_run_are_there():
    helps: dict = {}
    for page, block in silent():
        for words in commands(block):
            command = tuple(words[: 2 if words[0] == "study" else 1])
            if command not in helps:
                helps[command] = recoup(*command, "--help").stdout
            for option in (x for x in words if re.match(r"--[a-z]", x)):
                assert option in helps[command], f"{name_of(page)}:{block.line}: {option}"


PAGE = """# A page
```python
# mine.py
print("3.1416")
```
```console
$ python mine.py
3.1416

$ echo no
yes
```
```python
print(2)
```
```text
3
```
```python
>>> 1 + 1
2
>>> 1 + 2
4
```
<!-- not run: it needs a robot -->
```
recoup study show robot.db
```
```python
1 / 0
```
"""


def test_a_block_that_differs_is_named_with_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    wrong = list(played(page, tmp_path))
    assert [re.search(r"page\.md:(\d+): (.*)", line).groups() for line in wrong] == [
        ("6", "$ echo no"),
        ("13", "it prints"),
        ("19", ">>> 1 + 2"),
        ("29", "Traceback (most recent call last):"),
    ]


def test_a_block_without_a_word_that_begins_as_a_command_is_a_consoles():
    kinds = [(block.kind, block.reason) for block in blocks(PAGE)]
    assert kinds[1] == ("console", "")
    assert kinds[5] == ("console", "it needs a robot")


def test_a_consoles_block_has_its_commands_behind_the_sign(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\nrecoup methods\n```\n")
    assert len(list(played(page, tmp_path))) == 1
