"""What must be true of the distribution, installed from the checkout or from a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["importlinter"]["root_packages"]
LIBRARIES = {"heald_sqlite"}
"""Packages without a vocabulary: implementations import them, and no vocabulary does."""
CODE_GROUPS = ["console_scripts", "heald.plugins", "heald.verbs", "pytest11"]
FILE_GROUPS = ["heald.bundles", "heald.profiles"]

needs_checkout = pytest.mark.skipif(
    not (ROOT / "plugins").is_dir(), reason="the packages are installed, not checked out"
)


def installed(*groups: str) -> list[metadata.EntryPoint]:
    entry_points = metadata.distribution("heald").entry_points
    return [point for group in groups for point in entry_points.select(group=group)]


@needs_checkout
def test_every_package_in_the_tree_is_under_the_import_contracts() -> None:
    markers = [*ROOT.glob("kernel/*/py.typed"), *ROOT.glob("plugins/*/py.typed")]
    assert sorted(marker.parent.name for marker in markers) == PACKAGES


@needs_checkout
def test_every_folder_of_a_source_root_is_a_package() -> None:
    folders = [
        folder
        for root in ("kernel", "plugins")
        for folder in (ROOT / root).iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    ]
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_wheel_is_checked_for_the_packages_that_the_import_contracts_name() -> None:
    assert PROJECT["tool"]["check-wheel-contents"]["toplevel"] == PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_marked_as_typed(package: str) -> None:
    assert resources.files(package).joinpath("py.typed").is_file()


def test_entry_points_are_those_of_the_last_install() -> None:
    declared = {
        (group, name, value)
        for group, points in PROJECT["project"]["entry-points"].items()
        for name, value in points.items()
    }
    declared |= {("console_scripts", *item) for item in PROJECT["project"]["scripts"].items()}
    found = {(point.group, point.name, point.value) for point in installed(*CODE_GROUPS)}
    found |= {(point.group, point.name, point.value) for point in installed(*FILE_GROUPS)}
    assert found == declared, "entry points are read at install time: run pip install -e . again"


@pytest.mark.parametrize("point", installed(*CODE_GROUPS), ids=lambda point: point.value)
def test_an_entry_point_names_something_that_can_be_called(point: metadata.EntryPoint) -> None:
    loaded = point.load()
    assert callable(loaded) or point.group == "pytest11"


@pytest.mark.parametrize("point", installed(*FILE_GROUPS), ids=lambda point: point.value)
def test_an_entry_point_names_a_file_that_is_installed(point: metadata.EntryPoint) -> None:
    package, name = point.value.split(":")
    tomllib.loads(resources.files(package).joinpath(name).read_text("utf-8"))


def test_every_plugin_is_named_from_the_package_that_its_row_belongs_to() -> None:
    for point in installed("heald.plugins"):
        assert point.module == f"heald_{point.name.replace('-', '_')}.plugin"


@pytest.mark.parametrize("preset", ["minimal", "standard"])
def test_a_shipped_preset_is_installed(preset: str) -> None:
    shipped = resources.files("heald_preset").joinpath("shipped", preset, "preset.toml")
    assert tomllib.loads(shipped.read_text("utf-8"))


def test_a_vocabulary_loads_no_implementation_and_nothing_heavy() -> None:
    names = ["apsw", "openai", "rich", "zstandard", *(f"{name}.plugin" for name in PACKAGES[1:])]
    packages = ", ".join(name for name in PACKAGES if name not in LIBRARIES)
    program = f"import sys, {packages}; print(*sys.modules.keys() & {set(names)!r})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout.decode().split() == []


def test_a_host_loads_nothing_that_only_some_rows_need(tmp_path: Path) -> None:
    names = [
        "heald_persistence_memory.memory",
        "heald_tools_files.toolbox",
        "heald_tools_shell.agent_shell",
        "openai",
        "pathspec",
        "platformdirs",
        "rich",
        "tomlkit",
        "watchfiles",
        "yaml",
    ]
    program = f"""
import sys
from heald.cli import main
try:
    main(["sessions", "list"])
finally:
    print(*sys.modules.keys() & {set(names)!r}, file=sys.stderr)
"""
    env = os.environ | {"HEALD_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=env)
    assert ran.stderr.decode().split() == []


def test_every_requirement_has_a_floor() -> None:
    project = PROJECT["project"]
    named = [*PROJECT["dependency-groups"].values(), *project["optional-dependencies"].values()]
    requirements = [*project["dependencies"], *(one for many in named for one in many)]
    assert [one for one in requirements if isinstance(one, str) and ">=" not in one] == []


def test_the_test_group_tests_the_extras_as_they_are_offered() -> None:
    offered = PROJECT["project"]["optional-dependencies"]["openai"]
    assert set(offered) <= set(PROJECT["dependency-groups"]["test"])
