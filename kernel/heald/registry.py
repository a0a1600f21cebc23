"""Who implements what in one composition, kept by pluggy."""

from __future__ import annotations

from typing import Any

import pluggy

from heald.hooks import PROJECT, Declare
from heald.mounted import MountedRow
from heald.plugin import Plugin
from heald.shape import shape_of


class Registry(pluggy.PluginManager):
    """Keeps mounted rows by id, and has pluggy check names and arguments once more.

    Nothing is called through it: calls go through compiled tables.
    """

    def __init__(self) -> None:
        super().__init__(PROJECT)

    def add(self, row: MountedRow) -> None:
        """Register a row under its id, and the specifications it is the first to implement."""
        specs = (item.spec for item in row.planned.shape.implementations)
        functions = {
            spec.hook_name: staticmethod(spec.pluggy_function)
            for spec in specs
            if not hasattr(self.hook, spec.hook_name) and not isinstance(spec, Declare)
        }
        if functions:  # all at once: pluggy looks at everything that a class has
            self.add_hookspecs(type("Specs", (), functions))
        self.register(row.plugin, row.id)

    def remove(self, row: MountedRow) -> None:
        """Forget a row."""
        self.unregister(row.plugin, row.id)

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """Leave out vocabulary, which belongs to the process and not to a row."""
        cls: type[Plugin[Any]] = type(plugin)  # type: ignore[assignment] # nothing else is added
        implementations = shape_of(cls).implementations
        if any(i.attribute == name and not isinstance(i.spec, Declare) for i in implementations):
            return super().parse_hookimpl_opts(plugin, name)
        return None
