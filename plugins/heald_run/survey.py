"""The survey: a script that looks at a directory with real tools and real subagents.

Four parts are played by one script, told apart by the task they were given: the agent that was
asked, and its three subagents, of which one measures, one looks for marks and one reads. Each part
looks only at its own conversation, so a session that was interrupted can go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from heald import counted, shortened
from heald_models_scripted import Call, Conversation, Reply, Script
from heald_run.facts import hand_over, handed_over, measure_command, parse_measured, sum_up
from heald_run.report import report
from heald_session import ToolResult, UserMessage

SURVEY_MODEL = "scripted:survey"
SURVEY_TASK = "Survey this directory and report what it holds."
MAX_FILES = 1_000
"""How many files are looked at; the report says so if there are more."""
MAX_MARKS = 200
_OUTPUT_SIZE = 28_000
"""How many characters one shell command may print, so that the tool cuts none of them off."""
_REPLACED = "\N{REPLACEMENT CHARACTER}"
"""Stands in a path for what text cannot hold; no command can name such a file."""
_MARKS = r"\b(TODO|FIXME|XXX)\b"

_READER = "reader"
_BEGINNING = 5
"""Lines that are read of a file, of at most `_WIDTH` characters in the report."""
_WIDTH = 100

_MEASURE = "Measure every file below this directory: lines, bytes, languages."
_FIND_MARKS = "Find the open TODO marks below this directory."
_READ = "Read what this directory says about itself."
_READ_MORE = "Read the beginning of these files too: "
_CHILDREN = (
    ("measure", "one-shot", _MEASURE),
    ("marks", "continuable", _FIND_MARKS),
    (_READER, "continuable", _READ),
)


def play(conversation: Conversation) -> Reply:
    """Answer a request in the part that its conversation is for."""
    users = [m for m in conversation.messages if isinstance(m, UserMessage)]
    task = users[0].text if users else ""
    for beginning, part in _PARTS.items():
        if task.startswith(beginning):
            return part(conversation)
    if users and users[-1].sender is not None:
        return Reply(text="Noted.")
    return _coordinate(conversation)


SURVEY = Script("survey", play)


def _coordinate(conversation: Conversation) -> Reply:
    missing = [name for name in _NEEDED if not conversation.has_tool(name)]
    if missing:
        return Reply(text=f"This preset has no tool {', '.join(missing)}, so nothing was surveyed.")
    steps = [_look, _delegate, _wait, _ask_for_more, _wait, _list]
    if conversation.step < len(steps):
        return steps[conversation.step](conversation)
    return Reply(text=report(_facts(conversation), max_files=MAX_FILES, max_marks=MAX_MARKS))


_NEEDED = ("glob", "subagent", "wait_agents", "send_message", "list_agents")


def _look(_: Conversation) -> Reply:
    return Reply(text="First I look at what is here.", calls=(_glob(),))


def _glob() -> Call:
    return Call(tool="glob", arguments={"pattern": "**/*", "limit": MAX_FILES})


def _delegate(conversation: Conversation) -> Reply:
    found = counted(len(_paths(conversation)), "file")
    return Reply(
        text=f"I have {found} measured, searched and read side by side.",
        calls=tuple(
            Call(tool="subagent", arguments={"task": task, "label": label, "mode": mode})
            for label, mode, task in _CHILDREN
        ),
    )


def _wait(_: Conversation) -> Reply:
    return Reply(calls=(Call(tool="wait_agents", arguments={"timeout_s": 120}),))


def _ask_for_more(conversation: Conversation) -> Reply:
    longest = _facts(conversation).get("sizes", {}).get("longest", [])[:2]
    reader = _child_id(conversation, _READER)
    if reader is None or not longest:
        return _list(conversation)
    text = _READ_MORE + json.dumps(longest, ensure_ascii=False)
    return Reply(
        text="The reader shall also look into the longest files.",
        calls=(Call(tool="send_message", arguments={"to": reader, "text": text}),),
    )


def _list(_: Conversation) -> Reply:
    return Reply(calls=(Call(tool="list_agents", arguments={"scope": "children"}),))


def _measure(conversation: Conversation) -> Reply:
    if conversation.step == 0:
        return Reply(calls=(_glob(),))
    paths = _paths(conversation)
    named = [path for path in paths if _REPLACED not in path]
    chunks = _chunks(named)
    if conversation.step <= len(chunks):
        command = measure_command(chunks[conversation.step - 1])
        return Reply(calls=(Call(tool="shell", arguments={"command": command}),))
    measured = [parse_measured(result.text) for result in conversation.results("shell")]
    sizes = sum_up(measured, asked=len(named), unnamed=len(paths) - len(named))
    facts = {"sizes": attrs.asdict(sizes), "more_files": _was_cut(conversation, "glob")}
    found = f"{counted(sizes.files, 'file')}, {counted(sizes.lines, 'line')}"
    return Reply(text=f"I have measured {found}.\n{hand_over(facts)}")


def _find_marks(conversation: Conversation) -> Reply:
    if conversation.step == 0:
        arguments = {"pattern": _MARKS, "limit": MAX_MARKS}
        return Reply(calls=(Call(tool="grep", arguments=arguments),))
    found = [line for result in conversation.results("grep") for line in _lines(result)]
    marks = [shortened(line, _WIDTH) for line in found]
    facts = {"marks": marks, "more_marks": _was_cut(conversation, "grep")}
    return Reply(text=f"I have found {counted(len(marks), 'mark')}.\n{hand_over(facts)}")


def _read(conversation: Conversation) -> Reply:
    if conversation.prompt.startswith(_READ_MORE):
        paths = json.loads(conversation.prompt.removeprefix(_READ_MORE))
        return _read_beginnings(conversation, paths, at_step=0)
    if conversation.step == 0:
        return Reply(calls=(Call(tool="glob", arguments={"pattern": "./*"}),))
    named = sorted(_paths(conversation), key=lambda path: (not _is_readme(path), path))
    return _read_beginnings(conversation, [p for p in named[:1] if _is_readme(p)], at_step=1)


def _read_beginnings(conversation: Conversation, paths: Sequence[str], at_step: int) -> Reply:
    if paths and conversation.step == at_step:
        return Reply(
            calls=tuple(
                Call(tool="read", arguments={"path": path, "limit": _BEGINNING}) for path in paths
            )
        )
    read = [
        {"path": path, "lines": [_unnumbered(line) for line in _lines(result)]}
        for path, result in zip(paths, conversation.results("read"), strict=False)
        if not result.is_error
    ]
    return Reply(text=f"I have read {counted(len(read), 'file')}.\n{hand_over({'read': read})}")


_PARTS: Mapping[str, Callable[[Conversation], Reply]] = {
    _MEASURE: _measure,
    _FIND_MARKS: _find_marks,
    _READ: _read,
}


def _lines(result: ToolResult) -> list[str]:
    """Return the lines of a tool's answer without its notes, which stand in brackets."""
    lines = [] if result.is_error else result.text.split("\n")
    return [line for line in lines if line and not line.startswith("[")]


def _paths(conversation: Conversation) -> list[str]:
    return [path for result in conversation.results("glob") for path in _lines(result)]


def _was_cut(conversation: Conversation, tool: str) -> bool:
    """Say whether a tool noted that there is more than it returned."""
    texts = [result.text for result in conversation.results(tool)]
    return any("[there are more" in text or "[stopped after" in text for text in texts)


def _chunks(paths: Sequence[str]) -> list[list[str]]:
    """Divide paths so that no command made of them prints too much: two lines for each path."""
    chunks: list[list[str]] = []
    room = 0
    for path in paths:
        printed = 2 * (len(path) + 16)
        if printed > room:
            chunks.append([])
            room = _OUTPUT_SIZE
        room -= printed
        chunks[-1].append(path)
    return chunks


def _facts(conversation: Conversation) -> dict[str, Any]:
    """Gather what the subagents handed over; what they read is put together."""
    facts: dict[str, Any] = {}
    results = (*conversation.results("subagent"), *conversation.results("wait_agents"))
    for result in results:
        for handed in handed_over(result.text):
            more = [item for item in handed.pop("read", []) if item not in facts.get("read", [])]
            facts |= {**handed, "read": [*facts.get("read", []), *more]}
    if listed := conversation.results("list_agents"):
        facts["agents"] = re.findall(r"^(\w+): '(.*)', \w+$", listed[-1].text, re.MULTILINE)
    return facts


def _child_id(conversation: Conversation, label: str) -> str | None:
    """Find the id of the child that was started with a label."""
    labels = [child[0] for child in _CHILDREN]
    results = dict(zip(labels, conversation.results("subagent"), strict=False))
    text = results[label].text if label in results else ""
    match = re.search(r"\b[0-9a-f]{16}\b", text)
    return match.group() if match else None


def _is_readme(path: str) -> bool:
    return path.lower().startswith("readme")


def _unnumbered(line: str) -> str:
    """Take the line number off that `read` puts before a tab."""
    return shortened(line.partition("\t")[2], _WIDTH)
