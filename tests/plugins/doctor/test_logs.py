"""The check `logs` of the shipped storage."""

from __future__ import annotations

from pathlib import Path

from heald import Row
from heald.testing import CommandRunner, HostFactory
from heald_session import SessionId, session_store


async def test_a_session_that_cannot_be_opened_is_an_error_that_names_it(
    heald_host: HostFactory, heald_home: Path, heald_cli: CommandRunner
) -> None:
    async with heald_host(rows=[Row(name, name) for name in ("session", "persistence")]) as host:
        for name in ("good", "broken"):
            session = await host.scope.require(session_store).create(cwd="/", id=SessionId(name))
            session.append("turn/start", {"turn": 1})
    assert heald_cli("doctor", "logs").stdout == "logs  ok\n"
    (heald_home / "sessions" / "broken" / "session.json").write_text("{")
    lines = heald_cli("doctor", "logs", code=1).stdout.splitlines()
    assert lines[0] == "logs  1 finding"
    assert lines[1].startswith("  error: session broken cannot be opened: ")
    assert lines[2] == "    `heald sessions verify broken` says what is damaged"
