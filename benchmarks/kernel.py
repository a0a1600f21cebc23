"""What composing and calling through the kernel costs, against doing the same without it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import importlib_metadata
from packaging.requirements import Requirement

sys.path.insert(0, str(Path(__file__).parents[1]))  # this file is run as a script

from benchmarks.report import Measurement, fastest, main

from heald import Discovery, Host, Row, open_host

LISTENERS = 20
CALLS = 2_000
PLUGIN = """
from heald import NoConfig, Plugin, implements, observe, provide

@observe
def happened(what: str, when: int) -> None: ...

@provide
def service() -> str: ...

class Bench(Plugin[NoConfig]):
    @implements(happened)
    def hear(self, what: str, when: int) -> None:
        pass

class Serving(Plugin[NoConfig]):
    @implements(service)
    def it(self) -> str:
        return "here"
"""


@contextlib.asynccontextmanager
async def host_of(*rows: Row) -> AsyncIterator[Host]:
    """Open a host of the plugins above, installed for the occasion as a stranger's would be."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        (site / "bench_plugin.py").write_text(PLUGIN)
        info = site / "bench-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: bench\nVersion: 1.0\n")
        points = "bench = bench_plugin:Bench\nserving = bench_plugin:Serving\n"
        (info / "entry_points.txt").write_text(f"[heald.plugins]\n{points}")
        sys.path.insert(0, folder)
        try:
            discovery = Discovery([folder])
            async with open_host(
                home=site / "home", rows=rows, env={}, discovery=discovery
            ) as host:
                yield host
        finally:
            sys.path.remove(folder)


async def calls() -> list[Measurement]:
    """Measure what is on the way of every event and every lookup."""
    rows = [Row(f"r{n}", "bench") for n in range(LISTENERS)]
    async with host_of(*rows, Row("serving", "serving")) as host:
        bench = importlib.import_module("bench_plugin")
        return [*_notifying(host, bench.happened), *_looking_up(host, bench.service)]


def _notifying(host: Host, spec: Any) -> list[Measurement]:
    mounted: list[Any] = [row.plugin for row in host.composition.mounted]
    listeners = [plugin.hear for plugin in mounted[:LISTENERS]]
    notify = host.scope.notify

    def contained() -> None:
        for _ in range(CALLS):
            for listener in listeners:
                try:
                    listener("x", 1)
                except Exception as error:  # noqa: BLE001 - as notify contains it
                    print(error)

    def notified() -> None:
        for _ in range(CALLS):
            notify(spec, "x", 1)

    loop, ours = fastest(15, contained, notified)
    return [Measurement("notify of 20 listeners / a contained loop over them", ours / loop, "x", 3)]


def _looking_up(host: Host, spec: Any) -> list[Measurement]:
    table = {spec: "here", **dict.fromkeys(range(LISTENERS))}
    require, find = host.scope.require, host.scope.find

    def look_up(key: Any) -> Any:
        return table[key]

    def repeated(call: Callable[[Any], Any]) -> Callable[[], None]:
        def repeat() -> None:
            for _ in range(CALLS * 10):
                call(spec)

        return repeat

    lookup, required, found = fastest(15, *map(repeated, (look_up, require, find)))
    return [
        Measurement("require / a dictionary lookup and a call", required / lookup, "x", 2),
        Measurement("find / a dictionary lookup and a call", found / lookup, "x", 2),
    ]


ROWS = """
import asyncio, logging, tempfile, time
from contextlib import AsyncExitStack
from pathlib import Path
import heald_preset
from heald import Discovery, RowContext, open_host, read_layer, stack
from heald.profiles import read_profile
home = Path(tempfile.mkdtemp())
shipped = Path(heald_preset.__file__).parent / "shipped" / "standard" / "preset.toml"
keys = ("label", "description", "order", "extends")
def rows():
    discovery = Discovery()
    host = stack(read_profile(home, discovery, name="default").layers, {}).rows
    return discovery, host, stack([read_layer(shipped, keys=keys)], {}).rows
"""
COMPOSE = f"""{ROWS}
async def main():
    began = time.perf_counter()
    discovery, host_rows, preset_rows = rows()
    options = dict(home=home, env={{}}, discovery=discovery, strict=True)
    async with open_host(rows=host_rows, **options) as host:
        await host.mount("standard", preset_rows)
        print(time.perf_counter() - began)
asyncio.run(main())
"""
ALONE = f"""{ROWS}
async def main():
    discovery, host_rows, preset_rows = rows()
    async with open_host(home=home, rows=[], env={{}}, discovery=discovery) as host:
        began = time.perf_counter()
        for row in [*host_rows, *preset_rows]:
            cls = discovery.plugins[row.plugin].load()
            config, logger = cls.Config(**row.config), logging.getLogger(row.id)
            cls(RowContext(row.id, config, host.scope, AsyncExitStack(), logger))
        print(time.perf_counter() - began)
asyncio.run(main())
"""


def output_of(code: str) -> list[float]:
    """Return the numbers that a fresh process prints."""
    ran = _run("-c", code)
    return [float(word) for word in ran.stdout.split()]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603


def composing() -> list[Measurement]:
    """Compare composing the host and `standard` with importing and constructing their plugins."""
    composed, alone = float("inf"), float("inf")
    for _ in range(7):
        composed = min(composed, output_of(COMPOSE)[0])
        alone = min(alone, output_of(ALONE)[0])
    name = "composing host and standard / importing and constructing their plugins"
    return [
        Measurement(name, composed / alone, "x", 2),
        Measurement("composing host and standard", composed * 1000, "ms"),
    ]


async def second_agent() -> list[Measurement]:
    """Count what a second agent on `standard` constructs."""
    from heald_agent import agents  # noqa: PLC0415 - the measurements above need no plugin

    with tempfile.TemporaryDirectory() as folder:
        async with open_host(home=Path(folder, "home"), env={}, strict=True) as host:
            service = host.scope.require(agents)
            first = await service.create(cwd=Path(folder), preset="standard")
            before = host.constructed
            second = await service.create(cwd=Path(folder), preset="standard")
            constructed = host.constructed - before
            await second.dispose()
            await first.dispose()
    return [Measurement("plugins a second agent on standard constructs", constructed, "count", 0)]


COUNTED = """
import sys
from heald.cli import main
try:
    main({args!r})
finally:
    print(sum(name.startswith("heald_") for name in sys.modules), file=sys.stderr)
"""
PEER = "import click, pluggy, attrs, importlib_metadata"


def verbs() -> Iterator[Measurement]:
    """Measure the verbs that import no plugin against the imports they cannot do without."""
    commands = {"heald --version": ["--version"], "heald plugins list": ["plugins", "list"]}

    runs = [partial(_run, "-m", "heald", *arguments) for arguments in commands.values()]
    times = fastest(12, partial(_run, "-c", PEER), *runs)
    for (name, arguments), took in zip(commands.items(), times[1:], strict=True):
        yield Measurement(f"{name} / {PEER}", took / times[0], "x", 2)
        told = _run("-c", COUNTED.format(args=arguments)).stderr
        counter = f"plugin modules that {name} imports"
        yield Measurement(counter, int(told.split()[-1]), "count", 0)


def demo() -> list[Measurement]:
    """Measure `heald demo` on a small directory."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        for n in range(20):
            (work / f"module_{n}.py").write_text(f"# TODO: {n}\n" + "x = 1\n" * 50)
        env = {**os.environ, "HEALD_HOME": str(Path(folder, "home"))}
        began = time.perf_counter()
        command = [sys.executable, "-m", "heald", "demo", str(work)]
        null = subprocess.DEVNULL
        with subprocess.Popen(command, env=env, stdout=null, stderr=null) as process:  # noqa: S603
            _, status, used = os.wait4(process.pid, 0)
            took = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"heald demo exited with {process.returncode}")
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return [
        Measurement("heald demo, wall time", took, "s"),
        Measurement("heald demo, peak memory", used.ru_maxrss * kilobyte / 2**20, "MiB"),
    ]


def installation() -> list[Measurement]:
    """Count the packages of a base installation, and their size."""
    wanted, packages = ["heald"], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in packages:
            packages.add(name)
            needed = map(Requirement, importlib_metadata.requires(name) or ())
            wanted += [
                r.name for r in needed if r.marker is None or r.marker.evaluate({"extra": ""})
            ]
    size = sum(_size(name) for name in packages)
    return [
        Measurement("packages of a base installation", len(packages), "count", 29),
        Measurement("size of a base installation", size / 10**6, "MB", 79.9),
    ]


def _size(name: str) -> int:
    distribution = importlib_metadata.distribution(name)
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
    for point in distribution.entry_points:  # an editable installation lists none of its modules
        spec = find_spec(point.module.partition(".")[0])
        for root in (spec.submodule_search_locations or ()) if spec else ():
            files += Path(root).rglob("*")
    return sum(file.stat().st_size for file in {f.resolve() for f in files} if file.is_file())


def everything() -> Iterator[Measurement]:
    """Measure one thing after another."""
    yield from asyncio.run(calls())
    yield from composing()
    yield from asyncio.run(second_agent())
    yield from verbs()
    yield from demo()
    yield from installation()


if __name__ == "__main__":
    main(everything())
