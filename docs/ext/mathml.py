"""Formulas as MathML, made when the site is built, so that a page loads no script for them.

What cannot be converted is a warning with the file and the line of the formula.
"""

import re
from itertools import pairwise
from xml.etree import ElementTree

from docutils.nodes import SkipNode
from latex2mathml.commands import MATRICES
from latex2mathml.converter import convert
from sphinx.util import logging

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", NAMESPACE)
LOG = logging.getLogger(__name__)
PRIMES = re.compile("[\u2032-\u2034]")
LEFT = re.compile(r"\\[A-Za-z]+|\\.")  # of a command that is not known
ENVIRONMENT = re.compile(r"\\begin\s*\{(.*?)\}")
NEEDS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "mover": 2, "munder": 2}  # parts of each
NEEDS |= {"msubsup": 3, "munderover": 3}
SIGNS = {"±": "±", "∓": "∓", "~": "∼"}  # taken for letters, and so set without space
ACCENTS = "^ˇ~˜¯´`˘˙¨→"
OPENING = tuple("([{⟨")
THIN = {"width": "0.167em"}


def mathml(tex, *, display):
    """A formula as `<math>`; a ValueError that says what is not understood."""
    braces = re.sub(r"\\.", "", tex)
    if braces.count("{") != braces.count("}"):
        raise ValueError("a brace is missing")
    for name in ENVIRONMENT.findall(tex):
        if f"\\{name}" not in MATRICES:
            raise ValueError(f"\\begin{{{name}}} is not known")
    try:
        made = convert(tex, display="block" if display else "inline")
        tree = ElementTree.fromstring(made)
    except Exception as wrong:  # what it raises has no class of its own
        raise ValueError(f"{type(wrong).__name__} {wrong}".strip()) from wrong
    left = LEFT.search("".join(tree.itertext()))
    if left:
        raise ValueError(f"{left[0]} is not known")
    whole(tree)
    primes_beside(tree)
    spaced(tree)
    return ElementTree.tostring(tree, encoding="unicode")


def kind(node):
    """The name of an element."""
    return node.tag.rpartition("}")[2]


def whole(tree):
    """A ValueError for what lacks a part, such as a fraction of one number, or is not shown."""
    if len(tree) == 1 and not len(tree[0]) and not tree[0].text:
        raise ValueError("nothing is left of it")
    for node in tree.iter():
        if node.get("mathvariant", "normal") != "normal":
            raise ValueError(f"browsers do not show {node.get('mathvariant')} letters")
        if len(node) != NEEDS.get(kind(node), len(node)):
            raise ValueError(f"{kind(node)} has {len(node)} of {NEEDS[kind(node)]} parts")


def primes_beside(tree):
    """Puts primes beside what they are of: they are raised already, and too small once more."""
    for node in tree.iter():
        *of, last = list(node) or [node]
        raised = kind(node) in ("msup", "msubsup")
        if raised and PRIMES.fullmatch(last.text or ""):
            node.tag, last.tag = f"{{{NAMESPACE}}}mrow", f"{{{NAMESPACE}}}mo"
            if len(of) == 2:
                lower = ElementTree.Element(f"{{{NAMESPACE}}}msub")
                lower.extend(of)
                node[:] = [lower, last]


def spaced(tree):
    """Sets signs, bars, accents and functions with the space that is theirs."""
    for node in list(tree.iter()):
        if kind(node) == "mi" and node.text in SIGNS:
            node.tag, node.text = f"{{{NAMESPACE}}}mo", SIGNS[node.text]
        elif kind(node) == "mo" and node.text == "|":
            node.attrib |= {"lspace": "0", "rspace": "0"}
        elif kind(node) == "mover" and (node[1].text or " ") in ACCENTS:
            node.set("accent", "true")
        for at, (left, right) in reversed(list(enumerate(pairwise(node), 1))):
            apart = is_function(left) and not "".join(right.itertext()).startswith(OPENING)
            if kind(node) == "mrow" and (apart or (is_function(right) and is_operand(left))):
                node.insert(at, ElementTree.Element(f"{{{NAMESPACE}}}mspace", THIN))


def is_function(node):
    """Whether a node is the name of a function such as log, with what stands below or above it."""
    if kind(node) in NEEDS:
        return is_function(node[0])
    return kind(node) == "mi" and len(node.text or "") > 1


def is_operand(node):
    """Whether a node ends in what a function may be multiplied with."""
    return kind(node) not in ("mo", "mspace", "mtext") and not is_function(node)


def placed(translator, node, *, display):
    """Puts a formula on the page, or warns of it with its place."""
    try:
        translator.body.append(mathml(node.astext(), display=display))
    except ValueError as wrong:
        LOG.warning("a formula cannot be converted (%s): %s", wrong, node.astext(), location=node)


def inline(translator, node):
    placed(translator, node, display=False)
    raise SkipNode


def block(translator, node):
    translator.body.append('<div class="formula">')
    placed(translator, node, display=True)
    translator.body.append("</div>\n")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
