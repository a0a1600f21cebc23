"""Headless runs from the command line, and the demonstration that needs no key."""

from heald_run.hookspecs import progress_feed
from heald_run.progress import Node, ProgressFeed, ProgressTree

__all__ = ["Node", "ProgressFeed", "ProgressTree", "progress_feed"]
