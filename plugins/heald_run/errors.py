"""Errors of headless runs."""

from __future__ import annotations

import attrs

from heald import HealdError


@attrs.define
class NothingToContinue(HealdError, LookupError):
    """There is no session of this directory to go on with."""

    code = "NOTHING_TO_CONTINUE"
    cwd: str

    def message(self) -> str:
        return f"no session was started in {self.cwd}; leave out --continue to start one"


@attrs.define
class OptionsConflict(HealdError, ValueError):
    """Options were given together that exclude each other."""

    code = "OPTIONS_CONFLICT"
    exit_code = 2
    options: tuple[str, ...]

    def message(self) -> str:
        return f"{' and '.join(self.options)} exclude each other; give one of them"


@attrs.define
class TaskEmpty(HealdError, ValueError):
    """There is nothing to do."""

    code = "TASK_EMPTY"
    exit_code = 2

    def message(self) -> str:
        return 'the task is empty; say what to do: heald run "TASK"'
