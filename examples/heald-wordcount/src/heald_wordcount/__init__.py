"""Counting words: what this package publishes for others to import.

Importing it loads data types only. The plugins, which Heald finds by their entry points, are
imported when a row names them or when their vocabulary is needed.
"""

from heald_wordcount.counts import COUNTED, WORD_COUNTS, WordsCounted

__all__ = ["COUNTED", "WORD_COUNTS", "WordsCounted"]
