"""The reference of error codes is neither short of a code nor long of one."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from pathlib import Path
from typing import get_args

from heald import HealdError
from heald.faults import FaultCode

ROOT = Path(__file__).parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
    "root_packages"
]


def codes_of(error: type[HealdError]) -> set[str]:
    own = {error.code} if "code" in vars(error) else set()
    return own.union(*(codes_of(sub) for sub in error.__subclasses__()))


def test_every_error_code_is_in_the_reference_and_no_other() -> None:
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    ours = {
        code
        for error in HealdError.__subclasses__()
        if error.__module__.startswith("heald")
        for code in codes_of(error)
    }
    assert codes_on_the_page()[0] == ours


def test_every_fault_code_is_in_the_reference_and_no_other() -> None:
    assert codes_on_the_page()[1] == set(get_args(FaultCode))


def codes_on_the_page() -> tuple[set[str], set[str]]:
    """Return the codes of the page's two tables: those of errors, and those of faults."""
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    tables = page.partition("## Faults of a composition")
    errors, faults = (re.findall(r"^\| `([A-Z_]+)` \|", t, re.MULTILINE) for t in tables[::2])
    return set(errors), set(faults)
