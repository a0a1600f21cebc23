"""The tool `count_words`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec

from heald_agent import Tool, ToolContext, ToolError
from heald_wordcount.counts import COUNTED


class CountWordsArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `count_words` is called with; the model sees it as JSON Schema."""

    path: Annotated[
        str, msgspec.Meta(description="A text file, relative to the working directory or absolute.")
    ]


def count_words_tool(shortest: int) -> Tool[CountWordsArguments]:
    """Make the tool; a word has at least `shortest` characters."""

    async def count_words(arguments: CountWordsArguments, context: ToolContext) -> str:
        path = context.cwd / arguments.path
        # A file may be slow to read, and the event loop is everybody's.
        words = await asyncio.to_thread(_count, path, shortest)
        context.cancel.check()
        context.agent.session.append(COUNTED, {"path": arguments.path, "words": words})
        return f"{arguments.path} has {words:,} words"

    return Tool(
        name="count_words",
        description="Count the words of a text file.",
        arguments=CountWordsArguments,
        run=count_words,
    )


def _count(path: Path, shortest: int) -> int:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ToolError(f"{path.name} is not a UTF-8 text file") from error
    return sum(len(word) >= shortest for word in text.split())
