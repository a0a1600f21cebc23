"""What a person can be asked, and who says that a person is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from heald_session import Session


@attrs.frozen(kw_only=True)
class Question:
    """Asks a person for an answer in words."""

    text: str
    options: tuple[str, ...] = ()
    """Answers that suggest themselves; the person may give another one."""


@attrs.frozen(kw_only=True)
class Approval:
    """Asks a person to approve one action."""

    text: str
    action: Any
    """What would be done, as JSON: the decision holds for this and for nothing else."""


Ask = Question | Approval

Answerer = Callable[[Session], bool]
"""Says whether somebody is there now who is shown the session's asks and can answer them."""
