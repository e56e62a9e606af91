"""What the reference says of a name: all of it comes from the code."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from typing import Any, NamedTuple

from parts import ELSEWHERE as ELSEWHERE
from parts import PARTS, Part

EXAMPLE = re.compile(r"^ *>>> ", re.M)
TAG = "Implements: "
ELSEWHERE_SHOWN = {path for part in PARTS for path in part.names}  # than with their class
CODE = re.compile(r"`([^`\n]+)`")


class Entry:
    """One documented name: a function, a class, or something of a class."""

    def __init__(self, part: Part, path: str, owner: "Entry | None" = None) -> None:
        """`path` is dotted: of what `owner` has, its name alone."""
        self.part, self.owner = part, owner
        self.name = path.rpartition(".")[2]
        self.label = self.name if owner is None else f"{owner.name}.{self.name}"
        self.path = path if owner is None else f"{owner.path}.{path}"
        self.public = path.count(".") == 1 if owner is None else owner.public
        self.found = _found(path) if owner is None else inspect.getattr_static(owner.found, path)

    @property
    def full_name(self) -> str:
        """The name as the site's search knows it."""
        return f"recoup.{self.label}" if self.public else self.label

    @property
    def anchor(self) -> str:
        """The anchor of its heading."""
        return re.sub(r"[^\w\- ]", "", self.label.lower())

    @property
    def address(self) -> str:
        """Where it stands, seen from another page of the reference."""
        return f"{self.part.slug}.md#{self.anchor}"

    @property
    def kind(self) -> str:
        """What it is, in the words of Sphinx."""
        if inspect.isclass(self.found):
            return "exception" if issubclass(self.found, Exception) else "class"
        if self.owner is None:
            return "function"
        if isinstance(self.found, classmethod):
            return "classmethod"
        return "method" if inspect.isfunction(self.found) else "property"

    @property
    def is_protocol(self) -> bool:
        """Whether users write it: the example of such a class is that of its methods too."""
        return bool(getattr(self.found, "_is_protocol", False)) or self.label == "Callback"

    @property
    def function(self) -> Any:
        """What is called, without what wraps it; a class is called by its `__init__`."""
        found = self.found
        if isinstance(found, property):
            return found.fget
        return getattr(found, "func", None) or getattr(found, "__func__", found)

    @property
    def text(self) -> str:
        """The docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """What it is called with; nothing of records, which nobody makes by hand."""
        if self.kind in ("property", "class", "exception"):
            return []
        found = list(inspect.signature(self.function).parameters.values())
        return found if self.owner is None else found[1:]

    def members(self) -> Iterator["Entry"]:
        """What a class offers, in the order of the source."""
        own = [] if self.owner or not inspect.isclass(self.found) else vars(self.found).items()
        for name, value in own:
            if not name.startswith("_") and _is_offered(self.found, name, value):
                yield Entry(self.part, name, self)


class Field(NamedTuple):
    """A field of a record: its type as it is written, and what its comment says."""

    name: str
    type: str
    text: str


def _found(path: str) -> Any:
    """The object of a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _is_offered(owner: type, name: str, value: Any) -> bool:
    """Whether it is a method or a property, and no field."""
    is_field = name in getattr(owner, "_fields", getattr(owner, "__dataclass_fields__", ()))
    kinds = (property, cached_property, classmethod)
    return not is_field and (inspect.isfunction(value) or isinstance(value, kinds))


@cache
def entries() -> tuple[Entry, ...]:
    """Everything that the reference documents, page by page."""
    found = []
    for part in PARTS:
        for path in part.names:
            entry = _entry(part, path)
            found += [entry, *(one for one in entry.members() if one.path not in ELSEWHERE_SHOWN)]
    return tuple(found)


def _entry(part: Part, path: str) -> Entry:
    """What a path names; a method that is named by itself has its class as owner."""
    above, _, name = path.rpartition(".")
    of_class = above.rpartition(".")[2][:1].isupper()
    return Entry(part, name, Entry(part, above)) if of_class else Entry(part, path)


def fields(entry: Entry) -> list[Field]:
    """The fields of a record, with the comments that stand beside and below them."""
    if not hasattr(entry.found, "_fields") and not hasattr(entry.found, "__dataclass_fields__"):
        return []
    lines = textwrap.dedent(inspect.getsource(entry.found)).splitlines()
    (body,) = ast.parse("\n".join(lines)).body
    assert isinstance(body, ast.ClassDef)
    rows = [row for row in body.body if isinstance(row, ast.AnnAssign)]
    return [
        Field(ast.unparse(row.target), _type(row.annotation), _comment(lines, row)) for row in rows
    ]


def _type(annotation: ast.expr) -> str:
    """A type as it is written; a name in quotes without them."""
    return ast.unparse(annotation).replace("'", "")


def _comment(lines: list[str], row: ast.AnnAssign) -> str:
    """What stands behind a field, and on the lines of comment below it."""
    end = (row.end_lineno or row.lineno) - 1
    found = [line.partition("# ")[2] for line in lines[row.lineno - 1 : end + 1]]
    for line in lines[end + 1 :]:
        if not line.strip().startswith("# ") or line.strip().startswith("# --"):
            break
        found.append(line.strip().removeprefix("# "))
    return " ".join(filter(None, (text.strip() for text in found)))


def records_in(annotation: object) -> list[str]:
    """Names of our records in a type: those of several words in capitals, such as TrialResult."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    return list(re.findall(r"recoup\.[\w.]*\.([A-Z]\w+)", text))


def types(entry: Entry) -> tuple[list[tuple[str, str, str]], str]:
    """Arguments with their types and what they are unless said, and the type of the answer."""
    source = textwrap.dedent(inspect.getsource(entry.function))
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    rows = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    rows += [one for one in (node.args.vararg, node.args.kwarg) if one]
    written = {row.arg: "" if row.annotation is None else _type(row.annotation) for row in rows}
    found = [(p.name, written[p.name], default(p)) for p in entry.parameters]
    return found, "" if node.returns is None else _type(node.returns).strip('"')


def default(parameter: inspect.Parameter) -> str:
    """What an argument is unless said, as it is typed; of a function its name."""
    if parameter.default is inspect.Parameter.empty:
        return ""
    return getattr(parameter.default, "__name__", None) or repr(parameter.default)


def faults(entry: Entry) -> list[str]:
    """What the docstring of a name lacks."""
    found, text = [], entry.text
    if not text:
        return [f"{entry.label} has no docstring"]
    of_protocol = entry.owner is not None and entry.owner.is_protocol
    if not EXAMPLE.search(text) and not of_protocol:
        found.append(f"{entry.label} has no example")
    named = " ".join(CODE.findall(text))
    for one in entry.parameters:
        if not re.search(rf"\b{one.name}\b", named):
            found.append(f"{entry.label} does not say what `{one.name}` is")
    if entry.parameters and "Raises" not in text and not of_protocol:
        found.append(f"{entry.label} does not say what it raises")
    for row in fields(entry):
        if not row.text and not re.search(rf"\b{row.name}\b", named):
            found.append(f"{entry.label} does not say what its field `{row.name}` is")
    return found
