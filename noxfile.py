"""Clean rooms (`make rooms`): the wheel without extras, outside of the clone, Python by Python."""

import json
import sys
from pathlib import Path

import nox
from release.pythons import ROOT, TRIED, classified, lowest, python

nox.options.default_venv_backend = "virtualenv"
nox.options.stop_on_first_error = False
README = ROOT / "README.md"
DIST = ROOT / "dist"
HERE = {version: found for version in TRIED if (found := python(version)) is not None}
MISSING = [version for version in TRIED if version not in HERE]
FIRST = next(iter(HERE.values()), None)
CITED = "cffconvert==2.0.0"  # wants a jsonschema of 2020, so it has a room of its own


def wheel() -> str:
    """The wheel that `make dist` has made."""
    found = sorted(DIST.glob("*.whl"))
    if len(found) != 1:
        raise SystemExit("there is no wheel in dist/: make dist")
    return str(found[0])


def newcomer(session: nox.Session) -> None:
    """README, outside of the clone."""
    folder = session.create_tmp()
    session.chdir(folder)
    for old in Path(folder).glob("*.db*"):  # of the last time: a study goes on where it was
        old.unlink()
    usual = {"PYTHONPATH": None, "PYTHONDONTWRITEBYTECODE": None}  # as most people have it
    session.run("python", "-P", ROOT / "release" / "newcomer.py", README, env=usual)


@nox.session(python=list(HERE.values()))
def room(session: nox.Session) -> None:
    """The newest versions of what is needed, as pip chooses them."""
    session.install("--no-compile", wheel())
    session.run("python", "-m", "pip", "check")
    newcomer(session)


@nox.session(python=FIRST)
def lowest_versions(session: nox.Session) -> None:
    """The lowest versions that pyproject.toml allows, with the lowest Python here."""
    pins = Path(session.create_tmp()) / "lowest.txt"
    pins.write_text("\n".join(lowest()) + "\n")
    session.install("--no-compile", "-c", str(pins), wheel())
    session.run("python", "-m", "pip", "list", "--format=freeze")
    newcomer(session)


@nox.session(python=FIRST)
def licences(session: nox.Session) -> None:
    """Licences of all that is needed, and the list of it (CycloneDX), beside the wheel."""
    session.install("--no-compile", wheel())
    bin_, here = Path(sys.executable).parent, Path(session.bin) / "python"
    said = Path(session.create_tmp()) / "licences.json"
    how = {"external": True, "silent": True}
    text = session.run(bin_ / "pip-licenses", f"--python={here}", "--format=json", **how)
    said.write_text(json.dumps(json.loads(text)))
    out = Path(wheel()).name.split("-py3")[0]
    session.run(
        *(bin_ / "cyclonedx-py", "environment", here, "--pyproject", ROOT / "pyproject.toml"),
        *("--output-reproducible", "--of", "JSON", "-o", DIST / f"{out}.cdx.json"),
        external=True,
    )
    name = DIST / f"{out}.licences.txt"
    session.run(sys.executable, "-m", "release.licences", said, name, external=True)


@nox.session(python=FIRST)
def citation(session: nox.Session) -> None:
    """CITATION.cff, as its schema wants it."""
    session.install(CITED)
    session.run("cffconvert", "--validate", "-i", ROOT / "CITATION.cff")


@nox.session(python=False)
def said(session: nox.Session) -> None:
    """Which Pythons there were, and whether the classifiers name those and no other."""
    for version in MISSING:
        session.log(f"Python {version} is not on this machine: nothing was run with it")
    if unseen := [version for version in classified() if version in MISSING]:
        session.warn(f"pyproject.toml names Python {', '.join(unseen)}, not run here")
    session.log(f"there are rooms for Python {', '.join(HERE)}: how they ended is listed below")
