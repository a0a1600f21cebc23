"""Tools with which a model delegates: start subagents, talk to them, wait for them, list them."""
