"""A SKILL.md on disk, of which no more is read than is good for a reader."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from heald_skills.contracts import Skill, SkillRoot
from heald_skills.problems import SkillProblem

FILE = "SKILL.md"
MOST_BYTES = 256 * 1024
"""A larger file is refused unread."""
MOST_FRONT_MATTER = 16 * 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FENCE = re.compile(rb"^---[ \t]*(\r?\n|\Z)", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"


def is_name(name: str) -> bool:
    """Say whether a skill may be called so: a word that can be typed after a slash."""
    return _NAME.fullmatch(name) is not None


def read_skill(root: SkillRoot, name: str) -> Skill | None:
    """Return what a directory of a root is as a skill, or None if it has no SKILL.md."""
    from heald_skills.front_matter import parsed  # noqa: PLC0415 - where there are no skills, no YAML

    directory = root.path / name
    try:
        with _opened(directory / FILE) as file:
            front, _ = _split(file.read(MOST_FRONT_MATTER))
        matter = parsed(front)
        _check_name(name, matter.name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problem = f"its {FILE} cannot be read: {error.strerror or error}"
    except SkillProblem as error:
        problem = str(error)
    else:
        return Skill(name, root.name, directory, matter.description, matter.extra)
    return Skill(name, root.name, directory, problem=problem)


def read_body(directory: Path) -> str:
    """Return what stands below the front matter; raises `SkillProblem`."""
    try:
        with _opened(directory / FILE) as file:
            _, body = _split(file.read(MOST_BYTES))
    except OSError as error:
        raise SkillProblem(f"its {FILE} cannot be read: {error.strerror or error}") from error
    return body.decode("utf-8", "replace").strip()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise SkillProblem(f"its {FILE} is no regular file")
    if status.st_size > MOST_BYTES:
        raise SkillProblem(
            f"its {FILE} has {status.st_size:,} bytes, at most {MOST_BYTES:,} are read; "
            f"move what is seldom needed to files beside it"
        )
    with path.open("rb") as file:
        yield file


def _split(start: bytes) -> tuple[str, bytes]:
    """Split what a file begins with into front matter and the rest."""
    start = start.removeprefix(_BOM)
    opening = _FENCE.match(start)
    if opening is None:
        raise SkillProblem("it does not begin with front matter between two lines `---`")
    closing = _FENCE.search(start, opening.end())
    if closing is None or closing.start() > MOST_FRONT_MATTER:
        raise SkillProblem(f"its front matter does not end within {MOST_FRONT_MATTER:,} bytes")
    try:
        return start[opening.end() : closing.start()].decode("utf-8"), start[closing.end() :]
    except UnicodeDecodeError as error:
        raise SkillProblem("its front matter is not UTF-8") from error


def _check_name(directory: str, said: str | None) -> None:
    if not is_name(directory):
        raise SkillProblem(
            f"{directory!r} cannot be a name; call the directory by at most 64 small letters, "
            f"digits and `-`"
        )
    if said not in (None, directory):
        raise SkillProblem(
            f"`name` is {said!r} and its directory {directory!r}; make them the same"
        )
