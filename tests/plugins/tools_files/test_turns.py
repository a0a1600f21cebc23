"""The tools as a model has them: called by a turn, their results in the log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from heald import Discovery, NoConfig, Plugin, Row, implements
from heald.testing import HostFactory
from heald_agent import agents
from heald_models_scripted import Call, Reply, Script, scripts, steps
from heald_session import ToolResult

REPLIES = [
    Reply(
        calls=(
            Call(tool="grep", arguments={"pattern": "TODO", "glob": "*.py"}),
            Call(tool="glob", arguments={"pattern": "*.py"}),
            Call(tool="read", arguments={"path": "main.py"}),
        )
    ),
    Reply(
        calls=(
            Call(tool="edit", arguments={"path": "main.py", "old": "# TODO\n", "new": ""}),
            Call(tool="write", arguments={"path": "../out.py", "content": ""}),
            Call(tool="read", arguments={"path": "main.py", "ofset": 1}),
        )
    ),
    Reply(text="done"),
]


class Scripts(Plugin[NoConfig]):
    @implements(scripts)
    def give(self) -> Iterable[Script]:
        return [steps("work", REPLIES)]


async def test_a_turn_reads_and_changes_files(heald_host: HostFactory, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "main.py").write_text("# TODO\nprint()\n")
    plugins = ["session", "agent", "models-scripted", "tools-files", "scripts"]
    rows = [Row(plugin, plugin) for plugin in plugins]
    async with heald_host(rows=rows, discovery=Discovery(program={"scripts": Scripts})) as host:
        agent = await host.scope.require(agents).create(cwd=work, model="scripted:work")
        await agent.send("tidy up")
        assert (await agent.settled()).text == "done"
        results = [m for m in agent.session.history() if isinstance(m, ToolResult)]
    assert [(r.name, r.is_error) for r in results] == [
        ("grep", False),
        ("glob", False),
        ("read", False),
        ("edit", False),
        ("write", True),
        ("read", True),
    ]
    assert [r.text for r in results[:4]] == [
        "main.py:1:# TODO",
        "main.py",
        "     1\t# TODO\n     2\tprint()",
        "replaced 1 place in main.py (from line 1)",
    ]
    assert "write only beneath that directory" in results[4].text
    assert "ofset" in results[5].text
    assert (work / "main.py").read_text() == "print()\n"
