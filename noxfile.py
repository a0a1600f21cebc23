"""What CI runs; `nox` alone runs the lot, quickest answers first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.reuse_venv = "yes"

PROJECT = nox.project.load_toml("pyproject.toml")
EXAMPLE = Path("examples/heald-wordcount")
BESIDE_THE_TESTS = ["README.md", "benchmarks", "docs", "examples", "pyproject.toml", "tests"]
"""What the tests may read of the checkout; they get the packages from the wheel alone."""
PYTEST = ["pytest", "--numprocesses=auto", "--dist=worksteal"]


def runs(python: str) -> bool:
    """Say whether that Python starts: a version manager's shim may stand for one that does not."""
    found = shutil.which(f"python{python}")
    if found is None:
        return False
    return subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0


SUPPORTED = ["3.11", "3.12", "3.13"]
FOUND = [python for python in SUPPORTED if runs(python)]


def groups(*names: str) -> list[str]:
    """Return the requirements of the named dependency groups."""
    return [*nox.project.dependency_groups(PROJECT, *names)]


def copy(names: list[str], source: Path, target: Path) -> None:
    """Copy files and folders by name from one folder into another."""
    target.mkdir(exist_ok=True)
    for name in names:
        copied = shutil.copytree if (source / name).is_dir() else shutil.copy
        copied(source / name, target / name)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, and that imports go only the ways we drew."""
    session.install("-e", ".", *groups("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-logo")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types twice: mypy strict, then pyright."""
    session.install("-e", ".", *groups("types"))
    session.run("mypy")
    session.run("pyright")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the docs, every warning an error, and run their examples."""
    session.install("-e", ".", *groups("docs"))
    out = Path(session.create_tmp()).resolve()
    build = ["sphinx-build", "-E", "-W", "--keep-going"]
    session.run(*build, "-n", "-q", "-b", "html", "docs", str(out / "html"))
    session.run(*build, "-b", "doctest", "docs", str(out / "doctest"))


@nox.session(python=FOUND or False)
def tests(session: nox.Session) -> None:
    """Run the tests against an editable install, on each Python that this machine has."""
    if not FOUND:
        session.error(f"none of Python {', '.join(SUPPORTED)} runs here")
    session.install("-e", ".", *groups("test"))
    session.run(*PYTEST, *session.posargs)


@nox.session(reuse_venv=False)
def package(session: nox.Session) -> None:
    """Build the wheel and test it, and a stranger's plugin, away from the checkout."""
    with TemporaryDirectory(prefix="heald-package-") as folder:
        away = Path(folder).resolve()
        session.install(*groups("release"))
        for project, dist in ((Path(), away / "ours"), (EXAMPLE, away / "theirs")):
            session.run("python", "-m", "build", "--outdir", dist, project, silent=True)
        (ours,) = away.glob("ours/*.whl")
        (theirs,) = away.glob("theirs/*.whl")
        session.run("check-wheel-contents", ours)
        session.install(str(ours), str(theirs), *groups("test"))

        copy(BESIDE_THE_TESTS, Path(), away)
        copy(["pyproject.toml", "tests"], EXAMPLE, away / "stranger")
        with session.chdir(away):
            where = "import heald; print(heald.__file__)"
            found = session.run("python", "-I", "-c", where, silent=True)
            if "site-packages" not in str(found):
                session.error(f"this would test {found} instead of the wheel")
            session.run(*PYTEST, *session.posargs)
        with session.chdir(away / "stranger"):
            session.run("pytest")


@nox.session(default=False)
def crash(session: nox.Session) -> None:
    """Kill, cut, flip and fill the disk as often as we promise, on one Python."""
    session.install("-e", ".", *groups("test"))
    session.run(*PYTEST, "-m", "crash", "--timeout=3600", *session.posargs)


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Measure what the project claims, once for a person and once for a program."""
    session.install("-e", ".", *groups("test", "peers"))
    apart = {"query_search.py", "report.py", "storage_peers.py"}
    for benchmark in sorted(p for p in Path("benchmarks").glob("*.py") if p.name not in apart):
        session.run("python", benchmark, *session.posargs)
        session.run("python", benchmark, "--json", *session.posargs)


@nox.session(default=False, venv_backend="uv")
def minimums(session: nox.Session) -> None:
    """Run the tests with the oldest versions we say we support."""
    session.install("-e", ".", *groups("test"), "--resolution=lowest-direct")
    session.run(*PYTEST, *session.posargs)
