"""What there is: plugins, bundles, profiles and verbs, found by entry point, not imported.

A program that embeds Heald may add plugin classes of its own, which no distribution brings.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import importlib_metadata

from heald.errors import DataFileMissing, NameConflict, NotFound, describe

if TYPE_CHECKING:
    from heald.plugin import Plugin

PLUGINS = "heald.plugins"
BUNDLES = "heald.bundles"
PROFILES = "heald.profiles"
VERBS = "heald.verbs"
PROGRAM = "program"
"""What stands for the distribution of a plugin class that a program adds."""
_GROUPS = "heald."
_HEADER = re.compile(r"^(Name|Version): *(\S+)", re.MULTILINE)

_logger = logging.getLogger("heald.discovery")


@attrs.frozen
class Found:
    """One entry point, and the distribution that brought it."""

    name: str
    value: str
    distribution: str
    version: str
    entry: importlib_metadata.EntryPoint | type = attrs.field(repr=False, eq=False)
    """The entry point, or the class itself where a program added it."""

    @property
    def package(self) -> str:
        """The top-level import package the entry point leads to."""
        return self.value.partition(":")[0].partition(".")[0].strip()

    def load(self) -> object:
        """Import what the entry point names; whatever goes wrong there is raised."""
        if isinstance(self.entry, type):
            return self.entry
        loaded: object = self.entry.load()
        return loaded

    def file(self) -> Path:
        """Return the data file that a bundle or profile entry names, importing nothing.

        The value is `package:file.toml`. Raises `DataFileMissing`.
        """
        package, _, name = self.value.partition(":")
        top, *rest = package.split(".")
        spec = importlib.util.find_spec(top) if top.isidentifier() else None
        for root in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(root, *rest, name.strip())
            if path.is_file():
                return path
        raise DataFileMissing(self.name, self.value, self.distribution)


@attrs.define(eq=False, slots=False)
class Discovery:
    """The entry points of the running environment, read once; nothing is imported by reading.

    A distribution whose metadata cannot be read is told of once and passed over.
    """

    path: list[str] | None = None
    """Where to look for distributions, for tests; None is `sys.path`."""
    program: Mapping[str, type] = attrs.field(factory=dict)
    """Plugin classes by name that the running program adds to the installed ones."""
    _classes: dict[str, type[Plugin[Any]] | ImportError] = attrs.field(
        init=False, factory=dict, repr=False
    )

    def every(self, group: str) -> tuple[Found, ...]:
        """Return the entries of a group sorted by name, those that share a name too."""
        return tuple(sorted(self._by_group.get(group, ()), key=lambda f: (f.name, f.distribution)))

    def group(self, group: str) -> dict[str, Found]:
        """Return the entries of a group whose name only one distribution brings."""
        conflicts = self._conflicts(group)
        return {item.name: item for item in self.every(group) if item.name not in conflicts}

    @cached_property
    def plugins(self) -> dict[str, Found]:
        """Every installed plugin that can be used, by name."""
        return self.group(PLUGINS)

    @cached_property
    def conflicts(self) -> dict[str, NameConflict]:
        """Plugin names that cannot be used, because two distributions bring them."""
        return self._conflicts(PLUGINS)

    def named(self, group: str, name: str, kind: str) -> Found:
        """Return one entry; raise `NameConflict`, or `NotFound` naming the nearest."""
        if (conflict := self._conflicts(group, kind).get(name)) is not None:
            raise conflict
        entries = self.group(group)
        if name not in entries:
            raise NotFound(kind, name, tuple(entries))
        return entries[name]

    def owner_of(self, package: str) -> str | None:
        """Return the name of the plugin that lives in an import package."""
        return next((f.name for f in self.plugins.values() if f.package == package), None)

    def plugin_class(self, name: str) -> type[Plugin[Any]]:
        """Import an installed plugin's class.

        Whatever goes wrong, `sys.exit` too, is an `ImportError`. The attempt is made once, because
        a second import of a broken module can fail in another way and would be told of again.
        """
        if name not in self._classes:
            self._classes[name] = _import(self.plugins[name])
        outcome = self._classes[name]
        if isinstance(outcome, ImportError):
            raise outcome
        return outcome

    def _conflicts(self, group: str, kind: str = "plugin") -> dict[str, NameConflict]:
        owners: dict[str, list[str]] = {}
        for item in self.every(group):
            owners.setdefault(item.name, []).append(item.distribution)
        return {
            name: NameConflict(kind, name, tuple(distributions))
            for name, distributions in owners.items()
            if len(distributions) > 1
        }

    @cached_property
    def _by_group(self) -> dict[str, list[Found]]:
        found: dict[str, list[Found]] = {}
        names = set()
        # What is not there would be taken for a zip file; Python names one that seldom is there.
        every = sys.path if self.path is None else self.path
        path = [place for place in every if Path(place).exists()]
        for distribution in importlib_metadata.distributions(path=path):
            try:
                brought = _read(distribution)
            except Exception as error:  # noqa: BLE001 - one broken install must not hide the rest
                folder = distribution.locate_file("")
                _logger.warning("a distribution in %s is unreadable: %s", folder, describe(error))
                continue
            owner = brought[0][1].distribution if brought else None
            if owner is not None and owner not in names:  # earlier on the path shadows
                names.add(owner)
                for group, item in brought:
                    found.setdefault(group, []).append(item)
        for name, cls in self.program.items():
            value = f"{cls.__module__}:{cls.__qualname__}"
            found.setdefault(PLUGINS, []).append(Found(name, value, PROGRAM, "0", cls))
        return found


def _read(distribution: Any) -> list[tuple[str, Found]]:  # importlib-metadata renamed the type
    """Return what a distribution brings, each with the name of its group."""
    if _GROUPS not in (distribution.read_text("entry_points.txt") or ""):
        return []  # nearly every one; parsing them all is most of what reading would cost
    entries = [e for e in distribution.entry_points if e.group.startswith(_GROUPS)]
    if not entries:
        return []
    # Two header lines; `distribution.metadata` would load the email package for them.
    text: str = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    header = dict(_HEADER.findall(text.partition("\n\n")[0]))
    name, version = header["Name"], header["Version"]
    return [(e.group, Found(e.name, e.value, name, version, e)) for e in entries]


def _import(found: Found) -> type[Plugin[Any]] | ImportError:
    from heald.plugin import Plugin  # noqa: PLC0415 - listing plugins needs none of it

    try:
        cls = found.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a module may even sys.exit
        failure = ImportError(describe(error))
        failure.__cause__ = error
        return failure
    if not (isinstance(cls, type) and issubclass(cls, Plugin)):
        return ImportError(f"{found.value} is not a subclass of heald.Plugin")
    return cls
