"""What one `preset.toml` says."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import attrs

from heald import CompositionError, Layer, read_layer
from heald_preset.problems import PresetProblem

_KEYS: dict[str, type] = {"label": str, "description": str, "order": int, "extends": str}


@attrs.frozen
class Document:
    """A preset's file: a layer of rows and patches, and what the roster shows of it."""

    layer: Layer
    directory: Path
    label: str | None = None
    description: str = ""
    order: int = 100
    extends: str | None = None

    @property
    def digest(self) -> str:
        """Of the file's bytes: another one makes another generation."""
        return sha256(self.layer.content).hexdigest()


def read_document(file: Path) -> Document:
    """Read a `preset.toml`; raises `PresetProblem` with everything that is wrong with it."""
    try:
        layer = read_layer(file, keys=tuple(_KEYS))
    except CompositionError as error:
        raise PresetProblem.of(error.faults) from error
    wrong = [
        f"{file}: {key}: expected {kind.__name__}, got {value!r}"
        for key, kind in _KEYS.items()
        if (value := layer.extra.get(key)) is not None and type(value) is not kind
    ]
    if wrong:
        raise PresetProblem("; ".join(wrong))
    return Document(layer, file.parent, **layer.extra)
