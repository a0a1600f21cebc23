"""The script `echo`: answers with the prompt, to try things with."""

from __future__ import annotations

from heald_models_scripted.script import Conversation, Reply, Script


def _play(conversation: Conversation) -> Reply:
    return Reply(text=conversation.prompt)


ECHO = Script("echo", _play)
