"""The hook that the scripted model owns."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from heald import collect
from heald_models_scripted.script import Script


@collect(key=attrgetter("name"))
def scripts() -> Iterable[Script]:
    """Contribute scripts that the scripted model can play."""
    ...
