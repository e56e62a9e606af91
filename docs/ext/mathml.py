"""Formulas as MathML, made when the site is built, so that a page loads no script for them.

What cannot be converted is a warning with the file and the line of the formula.
"""

import re
from xml.etree import ElementTree

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util import logging

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", NAMESPACE)
LOG = logging.getLogger(__name__)
PRIMES = re.compile("[\u2032-\u2034]")
LEFT = re.compile(r"\\[A-Za-z]+|\\.")  # of a command that is not known


def mathml(tex, *, display):
    """A formula as `<math>`; a ValueError that says what is not understood."""
    braces = re.sub(r"\\.", "", tex)
    if braces.count("{") != braces.count("}"):
        raise ValueError("a brace is missing")
    try:
        made = convert(tex, display="block" if display else "inline")
        tree = ElementTree.fromstring(made)
    except Exception as wrong:  # what it raises has no class of its own
        raise ValueError(f"{type(wrong).__name__} {wrong}".strip()) from wrong
    left = LEFT.search("".join(tree.itertext()))
    if left:
        raise ValueError(f"{left[0]} is not known")
    primes_beside(tree)
    return ElementTree.tostring(tree, encoding="unicode")


def primes_beside(tree):
    """Puts primes beside what they are of: they are raised already, and too small once more."""
    for node in tree.iter():
        *of, last = list(node) or [node]
        raised = node.tag.rpartition("}")[2] in ("msup", "msubsup")
        if raised and PRIMES.fullmatch(last.text or ""):
            node.tag, last.tag = f"{{{NAMESPACE}}}mrow", f"{{{NAMESPACE}}}mo"
            if len(of) == 2:
                lower = ElementTree.Element(f"{{{NAMESPACE}}}msub")
                lower.extend(of)
                node[:] = [lower, last]


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
