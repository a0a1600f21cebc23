"""The tool `ask_person`: asks a question, and returns what was answered."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from heald_agent import AskDecided, Question, Tool, ToolContext, ToolError

NOT_ANSWERED = "Go on as seems best to you, or say what you need to know and stop."


class AskArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the model gives."""

    question: Annotated[
        str,
        msgspec.Meta(min_length=1, description="One question, with all that is needed to answer."),
    ]
    options: Annotated[
        list[str],
        msgspec.Meta(
            max_length=10,
            description="Answers to choose from; the person may give another one.",
        ),
    ] = []


async def _ask(arguments: AskArguments, context: ToolContext) -> str:
    question = Question(text=arguments.question, options=tuple(arguments.options))
    decided = await context.agent.ask(question, cancel=context.cancel)
    if decided.answer is not None and decided.outcome == "answered":
        return decided.answer
    raise ToolError(f"The question was not answered: {_why(decided)}. {NOT_ANSWERED}")


def _why(decided: AskDecided) -> str:
    """Say why there is no answer, as the end of a sentence."""
    if decided.reason is not None:
        return decided.reason
    return f"the person declined ({decided.answer})" if decided.answer else "the person declined"


ASK_PERSON = Tool(
    name="ask_person",
    description=(
        "Ask the person you work for one question and wait for the answer. Use it only when you "
        "cannot find out yourself and the answer changes what you do."
    ),
    arguments=AskArguments,
    run=_ask,
    changes=False,
    timeout=math.inf,  # an ask has a deadline of its own
)
