"""Numbers of things and long texts, as people and models read them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, length: int) -> str:
    """Return at most so many characters of a text; `…` stands for what was cut off."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
