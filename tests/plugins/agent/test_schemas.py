from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from heald_agent.schemas import schema_of


class Inner(msgspec.Struct):
    deep: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    """What to do."""

    path: Annotated[str, msgspec.Meta(description="Where.")]
    inner: Inner
    more: list[Inner] = []


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


def references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for part in node for found in references(part)]
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [found for part in node.values() for found in references(part)]
    return []


def test_a_schema_is_an_object_with_every_part_in_its_place() -> None:
    schema = schema_of(Outer)
    assert schema["type"] == "object"
    assert schema["required"] == ["path", "inner"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["path"] == {"type": "string", "description": "Where."}
    assert schema["properties"]["inner"]["properties"]["deep"]["type"] == "integer"
    assert schema["properties"]["more"]["items"]["type"] == "object"
    assert references(schema) == []
    assert "$defs" not in schema


def test_a_part_that_contains_itself_is_defined_once_beside_the_root() -> None:
    schema = schema_of(Tree)
    assert schema["type"] == "object"
    assert set(references(schema)) == {"#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["properties"]["name"] == {"type": "string"}


def test_what_is_no_struct_is_refused() -> None:
    with pytest.raises(TypeError, match="no struct"):
        schema_of(int)


def test_the_same_arguments_have_the_same_bytes() -> None:
    assert msgspec.json.encode(schema_of(Outer)) == msgspec.json.encode(schema_of(Outer))
