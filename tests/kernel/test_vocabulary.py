"""What plugin classes declare for the whole process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from heald import Row, RowsFailed, VocabularyConflict

if TYPE_CHECKING:
    from tests.kernel.conftest import Site


def declares(*words: str) -> str:
    made = ", ".join(f"Word({word})" for word in words)
    return f"@classmethod\n@implements(patterns)\ndef it(cls): return [{made}]"


async def test_vocabulary_comes_from_every_installed_class_mounted_or_not_and_constructs_none(
    site: Site, loom: Any
) -> None:
    site.plugin("one", declares("'twill'"))
    site.plugin("two", declares("'satin'", "'plain', 2"))
    site.plugin("idle")
    async with site.host("idle") as host:
        words = host.vocabulary(loom.patterns)
        assert {word.key for word in words} == {"twill", "satin", "plain"}
        assert words.get("plain") == loom.Word("plain", 2)
        assert words.owner("plain") == "two"
        assert (words.get("lace"), words.owner("lace")) == (None, None)
        assert "twill" in words
        assert len(words) == 3
        assert host.vocabulary(loom.patterns) is words
        assert host.constructed == 1


async def test_a_class_is_asked_once(site: Site, loom: Any) -> None:
    site.plugin(
        "one",
        """
        @classmethod
        @implements(patterns)
        def it(cls):
            trace.append("asked")
            return [Word("twill")]
        """,
    )
    async with site.host("one") as host:
        host.vocabulary(loom.patterns)
        preset = await host.mount("preset", [Row("again", "one")])
        host.vocabulary(loom.patterns)
        await preset.close()
    assert loom.trace == ["asked"]


async def test_the_same_key_and_version_is_one_and_the_mounted_plugins(
    site: Site, loom: Any
) -> None:
    site.plugin("alpha", declares("'twill', 1, 'theirs'"))
    site.plugin("beta", declares("'twill', 1, 'mounted'"))
    async with site.host("beta", strict=True) as host:
        words = host.vocabulary(loom.patterns)
        assert len(words) == 1
        assert words.owner("twill") == "beta"
        assert [word.text for word in words] == ["mounted"]


async def test_of_two_versions_the_mounted_plugins_counts_and_the_other_fails_where_it_is_named(
    site: Site, loom: Any
) -> None:
    site.plugin("new", declares("'twill', 2"))
    site.plugin("old", declares("'twill', 1"))
    async with site.host("old") as host:
        assert host.vocabulary(loom.patterns).get("twill") == loom.Word("twill", 1)
        with pytest.raises(RowsFailed) as caught:
            await host.mount("preset", [Row("new", "new")])
        (failed,) = caught.value.failed
        assert failed.stage == "declare"
        reason = "loom.patterns 'twill' version 2 is version 1 in row old (plugin old)"
        assert failed.reason == reason
    async with site.host("new", "old") as host:
        assert [(row.row, row.stage) for row in host.composition.failed] == [("old", "declare")]
        assert host.vocabulary(loom.patterns).owner("twill") == "new"


async def test_with_neither_version_mounted_asking_names_both(site: Site, loom: Any) -> None:
    site.plugin("new", declares("'twill', 2", "'satin'"))
    site.plugin("old", declares("'twill', 1"))
    site.plugin("idle")
    async with site.host("idle") as host:
        words = host.vocabulary(loom.patterns)
        assert [word.key for word in words] == ["satin"]
        assert "twill" not in words
        with pytest.raises(VocabularyConflict) as caught:
            words.get("twill")
        assert caught.value.code == "VOCABULARY_CONFLICT"
        assert "plugin new (version 2) and plugin old (version 1)" in str(caught.value)
        assert words.conflicts["twill"] == caught.value.declared_by


async def test_a_row_that_starts_early_reads_the_same_vocabulary_as_a_late_one(
    site: Site, loom: Any
) -> None:
    site.plugin(
        "early",
        """
        async def start(self):
            trace.append(self.scope.host.vocabulary(patterns).owner("twill"))
        """,
    )
    site.plugin("new", declares("'twill', 2"))
    site.plugin("old", declares("'twill', 1"))
    async with site.host(Row("a", "early"), "old", Row("b", "early")):
        assert loom.trace == ["old", "old"]


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("", "raise RuntimeError('boom')"),
        ("", "sys.exit(1)"),
        ("@classmethod\n@implements(patterns)\ndef it(cls): sys.exit(1)", ""),
        ("@classmethod\n@implements(patterns)\ndef it(cls): return [object()]", ""),
        (declares("'twill', 1", "'twill', 2"), ""),
    ],
)
async def test_vocabulary_that_cannot_be_had_is_told_of_once_and_absent(
    site: Site, loom: Any, caplog: pytest.LogCaptureFixture, body: str, before: str
) -> None:
    site.plugin("bad", body, before=before)
    site.plugin("good", declares("'satin'"))
    async with site.host("good") as host:
        for _ in range(2):
            assert [word.key for word in host.vocabulary(loom.patterns)] == ["satin"]
            host._vocabularies.clear()
    told = [r.getMessage() for r in caplog.records]
    assert len(told) == 1
    assert told[0].startswith("plugin bad: its vocabulary is absent: ")


async def test_a_failed_row_is_not_told_of_again_for_its_vocabulary(
    site: Site, loom: Any, caplog: pytest.LogCaptureFixture
) -> None:
    site.plugin("bad", before="raise RuntimeError('boom')")
    async with site.host("bad") as host:
        host.vocabulary(loom.patterns)
    assert len(caplog.records) == 1


async def test_nothing_is_imported_for_vocabulary_until_it_is_needed(site: Site, loom: Any) -> None:
    import sys

    site.plugin("other", declares("'twill'"))
    site.plugin("idle")
    async with site.host("idle") as host:
        assert "heald_other" not in sys.modules
        host.vocabulary(loom.patterns)
        assert "heald_other" in sys.modules
