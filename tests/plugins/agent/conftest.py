"""Real hosts with a row that brings whatever a test needs: tools, scripts, guards, middleware."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import attrs
import pytest

from heald import Host, Next, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import (
    AnyTool,
    ModelAdapter,
    ModelReply,
    ModelRequest,
    PromptSection,
    ToolGuard,
    ToolReply,
    ToolRequest,
    model_call,
    models,
    prompt_sections,
    text_streamed,
    tool_call,
    tool_guards,
    tools,
)
from heald_models_scripted import Script, scripts
from heald_session import AppendGuard, Session, append_guards

HostWith = Callable[..., AbstractAsyncContextManager[Host]]


@attrs.define(kw_only=True)
class Brought:
    """What a test wants a row to bring."""

    tools: Sequence[AnyTool] = ()
    scripts: Sequence[Script] = ()
    guards: Sequence[ToolGuard] = ()
    sections: Sequence[PromptSection] = ()
    adapters: Sequence[ModelAdapter] = ()
    append: Sequence[AppendGuard] = ()
    around_model: Any = None
    around_tool: Any = None
    heard: list[str] = attrs.field(factory=list)


class Brings(Plugin[NoConfig]):
    brought: ClassVar[Brought]

    @implements(tools)
    def bring_tools(self) -> Iterable[AnyTool]:
        return self.brought.tools

    @implements(scripts)
    def bring_scripts(self) -> Iterable[Script]:
        return self.brought.scripts

    @implements(tool_guards)
    def bring_guards(self) -> Iterable[ToolGuard]:
        return self.brought.guards

    @implements(prompt_sections)
    def bring_sections(self) -> Iterable[PromptSection]:
        return self.brought.sections

    @implements(models)
    def bring_adapters(self) -> Iterable[ModelAdapter]:
        return self.brought.adapters

    @implements(append_guards)
    def bring_append_guards(self) -> Iterable[AppendGuard]:
        return self.brought.append

    @implements(model_call)
    async def stand_around_model(
        self, request: ModelRequest, call_next: Next[ModelRequest, ModelReply]
    ) -> ModelReply:
        around = self.brought.around_model
        return await (call_next(request) if around is None else around(request, call_next))

    @implements(tool_call)
    async def stand_around_tool(
        self, request: ToolRequest, call_next: Next[ToolRequest, ToolReply]
    ) -> ToolReply:
        around = self.brought.around_tool
        return await (call_next(request) if around is None else around(request, call_next))

    @implements(text_streamed)
    def hear(self, session: Session, text: str) -> None:
        self.brought.heard.append(text)


@pytest.fixture
def host_with(heald_host: HostFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostWith:
    """Return a factory of hosts with sessions, agents, the scripted model and what is brought."""
    info = tmp_path / "site" / "brings-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brings\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[heald.plugins]\nbrings = brings_for_tests:Brings\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def factory(
        *,
        agent: Mapping[str, object] | None = None,
        window: Mapping[str, object] | None = None,
        storage: bool = False,
        extra: Sequence[Row] = (),
        home: Path | None = None,
        **brought: Any,
    ) -> AbstractAsyncContextManager[Host]:
        module: Any = ModuleType("brings_for_tests")
        module.Brings = type("Brings", (Brings,), {"brought": Brought(**brought)})
        monkeypatch.setitem(sys.modules, "brings_for_tests", module)
        stored = [Row("persistence", "persistence")] if storage else []
        rows = [
            Row("session", "session", window or {}),
            *stored,
            *extra,
            Row("agent", "agent", agent or {}),
            Row("models-scripted", "models-scripted"),
            Row("brings", "brings"),
        ]
        return heald_host(rows=rows, home=home)

    return factory
