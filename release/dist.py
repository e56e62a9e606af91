"""`make dist`: the source archive and the wheel, built twice and equal, and every check of them."""

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from release.contents import wrong_inside

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
WHEEL_SIZE = 1_050_000  # bytes, at most; docs/lookup/releasing.md says what they are spent on
UMASK = 0o022  # of both builds: a wheel says by it who may read its files


def run(*command: str | Path, **how: object) -> str:
    """What a program prints; one that fails ends everything, with what it said."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **how)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def moment() -> str:
    """The second that files in a release are of: SOURCE_DATE_EPOCH, or the last commit's."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def copied(to: Path) -> Path:
    """A copy of the files that git knows, as they are now."""
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
    return to


def built(epoch: str) -> dict[str, bytes]:
    """Source archive and wheel by name, built in a new place: the wheel from the archive."""
    with tempfile.TemporaryDirectory(prefix="recoup-dist-") as place:
        source, out = copied(Path(place) / "source"), Path(place) / "out"
        build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", out)
        how = {"env": {**os.environ, "SOURCE_DATE_EPOCH": epoch}, "umask": UMASK}
        run(*build, "--sdist", source, **how)
        (archive,) = out.glob("*.tar.gz")
        archive.write_bytes(timeless(archive.read_bytes(), int(epoch)))
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        unpacked = Path(place) / archive.name.removesuffix(".tar.gz")
        run(*build, "--wheel", unpacked, **how)
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def timeless(archive: bytes, epoch: int) -> bytes:
    """The same source archive without its maker: in order, of one second and one owner."""
    plain = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            content = old.extractfile(member) if member.isfile() else None
            new.addfile(anonymous(member, epoch), content)
    return gzip.compress(plain.getvalue(), mtime=epoch)


def anonymous(member: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    """A member of an archive as nobody's, of the given second."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime, member.pax_headers = epoch, {}
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def members(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """The files in a wheel or in a source archive, without the folder that holds them all."""
    if name.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(content)) as wheel:
            yield from ((member, wheel.read(member)) for member in wheel.namelist())
        return
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive.getmembers():
            if (file := archive.extractfile(member)) is not None:
                yield member.name.partition("/")[2], file.read()


def checked(made: dict[str, bytes]) -> None:
    """Ends with a sentence where something is inside that should not be, or too much."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/recoup/__init__.py").read_text())
    assert version is not None
    if list(made) != [f"recoup-{version[1]}-py3-none-any.whl", f"recoup-{version[1]}.tar.gz"]:
        raise SystemExit(f"these are not the wheel and the source of {version[1]}: {list(made)}")
    for name, content in made.items():
        for file, inside in members(name, content):
            if why := wrong_inside(file, inside):
                raise SystemExit(f"{name}: {file} {why}")
    wheel = len(next(iter(made.values())))
    if wheel > WHEEL_SIZE:
        raise SystemExit(f"the wheel has {wheel:,} bytes, and at most {WHEEL_SIZE:,} are wanted")


def tools_agree() -> None:
    """Ends with what they said unless the tools of others find both files well made."""
    tool, (wheel,), (archive,) = Path(sys.executable).parent, DIST.glob("*.whl"), DIST.glob("*.gz")
    how = {"cwd": ROOT, "env": {**os.environ, "NO_COLOR": "1"}}
    for words in (
        (tool / "twine", "check", "--strict", archive, wheel),
        (tool / "check-wheel-contents", wheel),
        (tool / "validate-pyproject", "--disable=enable-network", "pyproject.toml"),
    ):
        print(run(*words, **how).strip())


def main() -> None:
    """Builds twice, compares, checks, and leaves both files in dist/."""
    epoch = moment()
    first, second = built(epoch), built(epoch)
    differ = [name for name in first if first[name] != second.get(name)]
    if differ or first.keys() != second.keys():
        raise SystemExit(f"two builds of the same files differ: {', '.join(differ)}")
    checked(first)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for name, content in first.items():
        (DIST / name).write_bytes(content)
    tools_agree()
    for name, content in first.items():
        print(f"{len(content):>9,} bytes  {hashlib.sha256(content).hexdigest()}  dist/{name}")
    print(f"built twice, equal to the byte (SOURCE_DATE_EPOCH={epoch})")


if __name__ == "__main__":
    main()
