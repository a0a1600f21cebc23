"""Tools with which a model searches and reads the sessions of its own directory."""
