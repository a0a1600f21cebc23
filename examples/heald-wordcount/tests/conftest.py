"""A host as a person would set it up: the base bundle, this package's, and a script to play."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from heald import Discovery, Host, NoConfig, Plugin, implements
from heald.testing import HostFactory
from heald_models_scripted import Call, Conversation, Reply, Script, scripts

PROFILE = """
label = "Counting"
bundles = ["base", "wordcount"]

[[rows]]
id = "counting-script"
plugin = "counting-script"
"""


def play(conversation: Conversation) -> Reply:
    """Count the words of every file that the prompt names, then say what the tool returned."""
    if conversation.step == 0:
        paths = conversation.prompt.split()
        return Reply(calls=tuple(Call(tool="count_words", arguments={"path": p}) for p in paths))
    return Reply(text="\n".join(result.text for result in conversation.results("count_words")))


class CountingScript(Plugin[NoConfig]):
    """Contributes the script; it is no installed plugin, so the test hands it to the host."""

    @implements(scripts)
    def counting_scripts(self) -> Iterable[Script]:
        """Give the script `scripted:counting`."""
        return [Script("counting", play)]


@pytest.fixture
def discovery() -> Discovery:
    """Know what is installed, and the script's plugin."""
    return Discovery(program={"counting-script": CountingScript})


@pytest.fixture
async def host(
    heald_host: HostFactory, heald_home: Path, discovery: Discovery
) -> AsyncIterator[Host]:
    """Open a host in a home whose profile names the package's bundle."""
    profile = heald_home / "profiles" / "counting"
    profile.mkdir(parents=True)
    (profile / "heald.toml").write_text(PROFILE)
    async with heald_host(profile="counting", discovery=discovery) as host:
        yield host


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Make a directory with files to count."""
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "one.txt").write_text("just a few words\n")
    (directory / "two.txt").write_text("and\n\tmore\n")
    (directory / "image").write_bytes(b"\xff\x00")
    return directory
