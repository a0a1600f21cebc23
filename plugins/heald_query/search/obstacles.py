"""What keeps files of an index from being used."""

from __future__ import annotations

import os
from pathlib import Path

from heald_query.search.index import SCHEMA


def obstacle(directory: Path) -> str | None:
    """Say why no index can be kept in a directory, if so; makes and opens nothing.

    A directory that is not there yet is as good as the one it would be made in.
    """
    try:
        standing = directory
        while not os.path.lexists(standing):
            standing = standing.parent
        if not standing.is_dir():
            return f"{standing} is not a directory"
        if not os.access(standing, os.W_OK | os.X_OK):
            return f"{standing} cannot be written to"
        files = directory.glob(f"{SCHEMA.name}-*") if standing == directory else ()
        return next((said for file in files if (said := _in_the_way(file)) is not None), None)
    except OSError as error:
        return str(error)


def _in_the_way(file: Path) -> str | None:
    if file.suffix == ".lock" and not file.is_file():
        return f"{file} is not a file"
    return None if os.access(file, os.R_OK | os.W_OK) else f"{file} cannot be written to"
