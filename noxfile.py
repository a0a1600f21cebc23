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
PYTEST = ["pytest", "--numprocesses=auto", "--dist=worksteal"]
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Many tests run `heald` in a process of its own; each would compile all that it imports again."""


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


def wheel(session: nox.Session, project: str) -> str:
    """Name the wheel that the session `build` made of a project, `ours` or `theirs`."""
    (found,) = (session.cache_dir / "dist" / project).glob("*.whl")
    return str(found.resolve())


def install_wheels(session: nox.Session, *projects: str) -> None:
    """Install what was built just now, and make sure that it is what will be tested."""
    wheels = [wheel(session, project) for project in projects]
    session.install(*wheels, *groups("test"))
    # An environment that is used again has the last wheel, whose version is the same.
    session.install("--force-reinstall", "--no-deps", *wheels)
    where = "import heald; print(heald.__file__)"
    found = session.run("python", "-I", "-c", where, silent=True)
    if "site-packages" not in str(found):
        session.error(f"this would test {found} instead of the wheel")


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


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build what we release and what a stranger would, and look into our wheel."""
    session.install(*groups("release"))
    dist = session.cache_dir / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    for project, folder in ((Path(), "ours"), (EXAMPLE, "theirs")):
        session.run("python", "-m", "build", "--outdir", dist / folder, project, silent=True)
    session.run("check-wheel-contents", wheel(session, "ours"))


@nox.session(python=FOUND or False, requires=["build"])
def tests(session: nox.Session) -> None:
    """Run the tests against the wheel, on each Python that this machine has."""
    if not FOUND:
        session.error(f"none of Python {', '.join(SUPPORTED)} runs here")
    install_wheels(session, "ours")
    session.run(*PYTEST, *session.posargs, env=KEEP_BYTECODE)


@nox.session(reuse_venv=False, requires=["build"])
def package(session: nox.Session) -> None:
    """Use our wheel and a stranger's in a fresh environment, away from the checkout."""
    with TemporaryDirectory(prefix="heald-package-") as folder:
        away = Path(folder).resolve()
        for project, name in ((Path(), "ours"), (EXAMPLE, "theirs")):
            shutil.copytree(project / "tests", away / name / "tests")
            shutil.copy(project / "pyproject.toml", away / name)
        session.install(wheel(session, "ours"))
        with session.chdir(away):  # before what the tests need can stand in for what we forgot
            session.run("heald", "demo", env={"HEALD_HOME": str(away / "home")}, silent=True)
        install_wheels(session, "ours", "theirs")
        for name, tests in (("ours", ["tests/test_packaging_facts.py"]), ("theirs", [])):
            with session.chdir(away / name):
                session.run("pytest", *tests, env=KEEP_BYTECODE)


@nox.session(default=False)
def crash(session: nox.Session) -> None:
    """Kill, cut, flip and fill the disk as often as we promise, on one Python."""
    session.install("-e", ".", *groups("test"))
    session.run(*PYTEST, "-m", "crash", "--timeout=3600", *session.posargs, env=KEEP_BYTECODE)


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
    session.run(*PYTEST, *session.posargs, env=KEEP_BYTECODE)
