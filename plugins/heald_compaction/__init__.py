"""Compaction: what was said gives way to a summary of it for the model, and stays for people."""

from heald_compaction.errors import CompactionNotNeeded, SummaryUnusable
from heald_compaction.events import CompactionFailed, CompactionStarted

__all__ = ["CompactionFailed", "CompactionNotNeeded", "CompactionStarted", "SummaryUnusable"]
