"""Tools that read, find, search, write and edit files of the session's directory."""
