"""The persona is one section of the system prompt, in the row's own words."""

from __future__ import annotations

import pytest

from heald import CompositionError, Row
from heald.testing import HostFactory
from heald_agent import prompt_sections


async def test_the_text_is_a_prompt_section_without_the_blank_lines_around_it(
    heald_host: HostFactory,
) -> None:
    text = "\nYou are {careful}.\n\nYou work in ${here}.\n"
    async with heald_host(rows=[Row("persona", "persona", {"text": text})]) as host:
        (section,) = host.scope.collect(prompt_sections)

        assert section.value.name == "persona"
        assert await section.value.render(None) == "You are {careful}.\n\nYou work in ${here}."  # type: ignore[arg-type]


async def test_a_persona_without_words_is_refused_before_anything_starts(
    heald_host: HostFactory,
) -> None:
    with pytest.raises(CompositionError, match=r"row persona: config\.text"):
        async with heald_host(rows=[Row("persona", "persona")]):
            pass


async def test_the_nearer_persona_is_the_one_that_counts(heald_host: HostFactory) -> None:
    async with heald_host(rows=[Row("persona", "persona", {"text": "far"})]) as host:
        above = await host.mount("above", [Row("mine", "persona", {"text": "near"})])

        (section,) = above.scope.collect(prompt_sections)

        assert section.origin.row == "mine"
