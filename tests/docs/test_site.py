"""How the site is built: each fault ends the build with its file and its line."""

import re

import pytest
from sites import DOCS, built, tiny, warnings

NOTEBOOK = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A notebook

```{code-cell} ipython3
print(6 * 7)
```
"""
CLEAN = {
    "index.md": """# A site

[Another](other.md#a-place), [a place](#here), $x_1^2$, $y'$
and {term}`lease`; ![a dot](dot-light.png)

$a \\pm 2 \\log \\bar{q}$ and $\\log(|a|)$

## Here

$$
w = \\frac{p}{q}
$$

```{glossary}
lease
    A time.
```

```{toctree}
other
notebook
```
""",
    "other.md": "# Another\n\n## A place\n\nA wombat.\n",
    "notebook.md": NOTEBOOK,
}
FAULTS = {  # line of index.md -> what stands there, what is said of it
    "link": ("[a](none.md)", "none.md"),
    "file": ("[a](../nowhere.py)", "nowhere.py"),
    "anchor": ("[a](other.md#none)", "'none'"),
    "anchor of the page": ("[a](#none)", "'none'"),
    "picture": ("![words](none.png)", "image file not readable: none.png"),
    "reference": ("{py:func}`nobody`", "reference target not found: nobody"),
    "term": ("{term}`nonsense`", "term not in glossary: 'nonsense'"),
    "command of a formula": ("$\\nonsense{x}$", "\\nonsense"),
    "brace of a formula": ("$a {b$", "a brace is missing"),
    "sign of a formula": ("$a & b$", "cannot be converted"),
    "part of a formula": ("$\\frac{p}$", "mfrac has 1 of 2 parts"),
    "environment of a formula": ("$\\begin{rows} p \\end{rows}$", "\\begin{rows} is not known"),
    "letters of a formula": ("$\\boldsymbol{p}$", "browsers do not show bold-italic letters"),
    "nothing of a formula": ("$\\def\\p{q}$", "cannot be converted"),
    "directive": ("```{nonsense}\n```", "nonsense"),
}
FAILING = "```{code-cell} ipython3\nx = 1\nx / 0\n```\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sites")


def dot(place):
    """A picture of a dot in light and in dark."""
    for scheme in ("light", "dark"):
        (place / f"dot-{scheme}.png").write_bytes((DOCS / "toy.png").read_bytes())
    return place


@pytest.fixture(scope="module")
def clean(folder):
    """A site without a fault."""
    done = built(dot(tiny(folder / "clean", CLEAN)), folder / "made" / "site")
    assert done.returncode == 0, done.stderr
    assert not warnings(done)
    return folder / "made" / "site"


@pytest.fixture(scope="module")
def faulty(folder):
    """What is said of a site with all faults, and the line of each."""
    text, lines = CLEAN["index.md"], {}
    for name, (fault, _) in FAULTS.items():
        lines[name] = text.count("\n") + 2
        text += f"\n{fault}\n"
    pages = CLEAN | {"index.md": text, "notebook.md": NOTEBOOK + f"\nText.\n\n{FAILING}"}
    done = built(dot(tiny(folder / "faulty", pages)), folder / "broken" / "site")
    assert done.returncode != 0
    return warnings(done), lines


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_the_build_with_its_file_and_line(name, faulty):
    said, lines = faulty
    found = [(page, line) for page, line, words in said if FAULTS[name][1] in words]
    assert ("index.md", lines[name]) in found, said


def test_a_cell_that_fails_ends_the_build_with_its_line(faulty):
    line = (NOTEBOOK + "\nText.\n\n").count("\n") + 3
    found = [x for x in faulty[0] if "ZeroDivisionError" in x[2]]
    assert [(page, at) for page, at, _ in found] == [("notebook.md", line)]


def test_a_page_that_is_in_no_table_of_contents_ends_the_build(folder):
    pages = {"index.md": "# A site\n", "alone.md": "# Alone\n"}
    done = built(tiny(folder / "alone", pages), folder / "left" / "site")
    assert done.returncode != 0
    assert [page for page, _, words in warnings(done) if "any toctree" in words] == ["alone.md"]


def test_formulas_are_mathml_and_load_nothing(clean):
    text = (clean / "index.html").read_text()
    assert text.count("<math ") == 5
    assert "<mfrac>" in text
    assert "<mrow><mi>y</mi><mo>′</mo></mrow>" in text  # raised once, not twice
    assert not re.findall(r'<(?:script|link|img)[^>]+"(?:https?:)?//', text)


def test_signs_functions_and_accents_of_formulas_have_their_space(clean):
    text = (clean / "index.html").read_text()
    thin = '<mspace width="0.167em" />'
    assert f"<mi>a</mi><mo>±</mo><mn>2</mn>{thin}<mi>log</mi>{thin}<mover accent" in text
    bar = '<mo stretchy="false" lspace="0" rspace="0">|</mo>'
    assert f'<mi>log</mi><mo stretchy="false">(</mo>{bar}<mi>a</mi>{bar}' in text


def test_a_picture_stands_there_in_both_schemes(clean):
    found = re.findall(r'<img alt="a dot" class="(only-\w+)"', (clean / "index.html").read_text())
    assert found == ["only-light", "only-dark"]


def test_what_a_notebook_prints_is_on_its_page(clean):
    assert "42" in (clean / "notebook.html").read_text()


def test_all_pages_are_made_again_once_a_script_that_makes_them_is_another(folder):
    source, out = tiny(folder / "again", {"index.md": "# A site\n\n$x$\n"}), folder / "two" / "site"
    assert built(source, out).returncode == 0
    script = source / "ext" / "mathml.py"
    text = script.read_text()
    script.write_text(text.replace("ElementTree.tostring(tree", '"" + ElementTree.tostring(tree'))
    assert script.read_text() != text
    page = out / "index.html"
    page.write_text("")
    assert built(source, out).returncode == 0
    assert "<math" in page.read_text()
