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
    label: str | None = None
    description: str = ""
    order: int = 100
    extends: str | None = None

    @property
    def directory(self) -> Path:
        """Where the file is, and what the preset carries beside it."""
        return Path(self.layer.name).parent

    @property
    def digest(self) -> str:
        """Of the file's bytes: another one makes another generation."""
        return sha256(self.layer.content).hexdigest()


def read_document(file: str) -> Document:
    """Read a preset's file; raises `PresetProblem` with everything that is wrong with it."""
    try:
        layer = read_layer(file, keys=tuple(_KEYS))
    except CompositionError as error:
        raise PresetProblem.of(error.faults) from error
    wrong = [
        f"{file}: {key}: expected {_KEYS[key].__name__}, got {value!r}"
        for key, value in layer.extra.items()
        if type(value) is not _KEYS[key]
    ]
    if wrong:
        raise PresetProblem("; ".join(wrong))
    return Document(layer, **layer.extra)
