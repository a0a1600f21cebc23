"""A distribution on disk whose plugins tell what happened to them, and presets that use it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType

import pytest

from heald import Discovery, Host, Row
from heald.testing import HostFactory
from heald_preset import Presets, presets
from heald_session import SessionStore, session_store

PROBES = """
import asyncio

import attrs

from heald import Plugin, collect, implements, observe, provide

log = []
gate = asyncio.Event()
gate.set()
starting = asyncio.Event()

@collect(key=str)
def words(): ...

@provide
def voice(): ...

@observe
def spoken(text): ...

@attrs.frozen
class WordConfig:
    word: str
    fail: bool = False

class WordPlugin(Plugin[WordConfig]):
    async def start(self):
        log.append(f"start {self.config.word}")
        self.stack.callback(log.append, f"undone {self.config.word}")
        starting.set()
        await gate.wait()
        if self.config.fail:
            raise RuntimeError(f"no {self.config.word}")

    async def stop(self):
        log.append(f"stop {self.config.word}")

    @implements(words)
    def contribute(self):
        return (self.config.word,)

    @implements(spoken)
    def hear(self, text):
        log.append(f"{self.config.word} heard {text}")

broken = asyncio.Event()

async def break_frail():
    broken.set()
    await asyncio.wait([task for task in asyncio.all_tasks() if "frail" in task.get_name()])
    broken.clear()

class FrailPlugin(WordPlugin):
    async def start(self):
        group = await self.stack.enter_async_context(asyncio.TaskGroup())
        self.breaking = group.create_task(self.break_(), name="frail")
        await super().start()

    async def stop(self):
        self.breaking.cancel()  # else the group would wait for it until the row's deadline
        await super().stop()

    async def break_(self):
        await broken.wait()
        raise RuntimeError("it broke")

class GrumpyPlugin(WordPlugin):
    async def stop(self):
        raise RuntimeError("it does not want to")

mood = []

class MoodyPlugin(WordPlugin):
    async def start(self):
        await super().start()
        if mood:
            raise RuntimeError(mood[0])

class VoicePlugin(WordPlugin):
    @implements(voice)
    def speak(self):
        return self.config.word

class RootsPlugin(Plugin[WordConfig]):
    @implements(__import__("heald_preset").preset_roots)
    def roots(self):
        from pathlib import Path
        from heald_preset import PresetRoot
        return (PresetRoot("acme", Path(self.config.word)),)
"""
ENTRY_POINTS = """
[heald.plugins]
word = {module}:WordPlugin
voice = {module}:VoicePlugin
frail = {module}:FrailPlugin
grumpy = {module}:GrumpyPlugin
moody = {module}:MoodyPlugin
roots = {module}:RootsPlugin
broken-import = {module}_that_is_not_there:Plugin
"""

FAILING = """
from heald import NoConfig, Plugin

class FailingPlugin(Plugin[NoConfig]):
    async def start(self):
        raise RuntimeError("it does")
"""


def install(folder: Path, name: str, version: str, entry_points: str) -> None:
    """Write what makes a folder hold an installed distribution."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return the module of the probe plugins; `log` is what they lived through."""
    folder = tmp_path / "site"
    install(folder, "probes", "1.0", ENTRY_POINTS.format(module="probe_words"))
    (folder / "probe_words.py").write_text(PROBES)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("probe_words")
    sys.modules.pop("probe_words", None)


@pytest.fixture
def discovery(probes: ModuleType) -> Discovery:
    """Return what is installed, the probes included."""
    assert probes.__file__
    return Discovery(path=[str(Path(probes.__file__).parent), *sys.path])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a session's directory."""
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def open_presets(
    heald_host: HostFactory, discovery: Discovery
) -> Callable[..., AbstractAsyncContextManager[Host]]:
    """Return a function that opens a host with the preset row and further ones."""

    def open_presets(
        *rows: Row, default: str = "standard", env: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Host]:
        preset = Row("preset", "preset", {"default": default})
        installed = Discovery(path=discovery.path)
        return heald_host(rows=[preset, *rows], discovery=installed, env=env)

    return open_presets


@pytest.fixture
async def host(
    open_presets: Callable[..., AbstractAsyncContextManager[Host]],
) -> AsyncIterator[Host]:
    """Return a host that keeps sessions and presets, with a word of its own."""
    async with open_presets(
        Row("session", "session"), Row("word", "voice", {"word": "host"})
    ) as host:
        yield host


@pytest.fixture
def service(host: Host) -> Presets:
    """Return the host's presets."""
    return host.scope.require(presets)


@pytest.fixture
def store(host: Host) -> SessionStore:
    """Return the host's sessions."""
    return host.scope.require(session_store)


@pytest.fixture
def user(heald_home: Path) -> Path:
    """Return the person's directory of presets."""
    path = heald_home / "presets"
    path.mkdir()
    return path


@pytest.fixture
def write(user: Path) -> Callable[..., Path]:
    """Return a function that writes `<root>/<id>/preset.toml`, the root being the person's own."""

    def write(name: str, text: str, root: Path = user) -> Path:
        file = root / name / "preset.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """Install a plugin that fails to start, and return where to find it."""
    folder = tmp_path / "failing"
    install(folder, "failing", "1.0", "[heald.plugins]\nfails = failing:FailingPlugin\n")
    (folder / "failing.py").write_text(FAILING)
    return folder
