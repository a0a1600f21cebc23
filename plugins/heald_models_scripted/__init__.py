"""The scripted model: plays a script, needs no network and no key, and is every test's double."""

from heald_models_scripted.hookspecs import scripts
from heald_models_scripted.script import Call, Conversation, Reply, Script, steps

__all__ = ["Call", "Conversation", "Reply", "Script", "scripts", "steps"]
