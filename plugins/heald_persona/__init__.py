"""The persona: the system prompt's first section, given by a row's configuration."""
