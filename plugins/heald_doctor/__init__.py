"""The doctor: checks of what is derived against what it is derived from, collected from plugins."""

from heald_doctor.check import Check, Finding, Progress
from heald_doctor.hookspecs import checks

__all__ = ["Check", "Finding", "Progress", "checks"]
