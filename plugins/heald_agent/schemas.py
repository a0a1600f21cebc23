"""JSON Schema of a tool's arguments, as models read it: an object at the top, nothing elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec

_REF = "#/$defs/"


def schema_of(arguments: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a struct, with every part in its place.

    Only a part that contains itself stays a reference, to a definition beside the root. Raises
    `TypeError` for what is no struct.
    """
    (root,), components = msgspec.json.schema_components([arguments], ref_template=_REF + "{name}")
    inliner = _Inliner(components)
    schema: dict[str, Any] = inliner.inlined(root, ())
    if schema.get("type") != "object":
        raise TypeError(f"{arguments!r} is no struct")
    schema.pop("title", None)
    if inliner.recursive:
        schema["$defs"] = inliner.definitions()
    return schema


class _Inliner:
    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components
        self.recursive: set[str] = set()

    def inlined(self, node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self.inlined(item, inside) for item in node]
        if not isinstance(node, dict):
            return node
        name = str(node.get("$ref", "")).removeprefix(_REF)
        if name in inside:
            self.recursive.add(name)
            return node
        if name in self._components:
            return self.inlined(self._components[name], (*inside, name))
        return {key: self.inlined(value, inside) for key, value in node.items()}

    def definitions(self) -> dict[str, Any]:
        return {
            name: self.inlined(self._components[name], tuple(self.recursive))
            for name in sorted(self.recursive)
        }
