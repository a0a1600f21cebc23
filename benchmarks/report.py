"""How every benchmark tells what it measured: a table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import NoReturn

import attrs


@attrs.frozen
class Measurement:
    """One measured value, and the limit it is to stay within, if there is one."""

    name: str
    value: float
    unit: str
    """`x` for a ratio to a peer that was measured in the same run; `count` for a counter."""
    limit: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the value is within the limit."""
        return self.limit is None or self.value <= self.limit


def fastest(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the least time each call took, in seconds; they take turns, to share the noise."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for n, call in enumerate(calls):
            began = time.perf_counter()
            call()
            best[n] = min(best[n], time.perf_counter() - began)
    return best


def main(measurements: Iterable[Measurement]) -> NoReturn:
    """Print what was measured, as it comes; exit with 1 if a value is over its limit."""
    told = []
    for measured in measurements:
        told.append(measured)
        if "--json" not in sys.argv[1:]:
            limit = "" if measured.limit is None else f"  (limit {measured.limit:g})"
            state = "ok  " if measured.ok else "OVER"
            print(
                f"{state} {measured.name}: {measured.value:.4g} {measured.unit}{limit}", flush=True
            )
    if "--json" in sys.argv[1:]:
        print(json.dumps([{**attrs.asdict(one), "ok": one.ok} for one in told], indent=2))
    sys.exit(any(not one.ok for one in told))
