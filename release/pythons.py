"""The Pythons on this machine, and the lowest versions of packages that pyproject.toml allows."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
TRIED = ("3.11", "3.12", "3.13", "3.14")  # a newer one is tried as soon as jaxlib is made for it


def project() -> dict[str, object]:
    """The table `project` of pyproject.toml."""
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def python(version: str) -> str | None:
    """The program that is Python of a version: on the path, or where pyenv keeps it."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(pyenv.glob(f"{version}.*/bin/python"), key=_number)
    for program in (shutil.which(f"python{version}"), *reversed(kept)):
        if program is not None and _is(program, version):
            return str(program)
    return None


def _number(path: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", path.parts[-3])]


def _is(program: str | Path, version: str) -> bool:
    """Whether a program is what its name says: pyenv has programs that only say what is missing."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() == version


def lowest(*extras: str) -> list[str]:
    """The lowest version of each package that is needed, as pip's constraints."""
    found = project()
    optional = found["optional-dependencies"]
    needed = list(found["dependencies"])  # type: ignore[call-overload]
    for extra in extras:
        needed += optional[extra]  # type: ignore[index]
    rows = [Requirement(text) for text in needed]
    return [f"{row.name}=={_least(row)}" for row in rows if row.name != "recoup"]


def _least(row: Requirement) -> str:
    (least,) = [clause.version for clause in row.specifier if clause.operator in (">=", "==")]
    return least


def classified() -> list[str]:
    """The versions of Python that pyproject.toml's classifiers name."""
    rows = list(project()["classifiers"])  # type: ignore[call-overload]
    return [row.rpartition(" ")[2] for row in rows if re.search(r":: Python :: 3\.\d+$", row)]
