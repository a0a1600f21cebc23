"""What is installed, found without importing any of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from heald import Discovery, HealdError, NotFound

if TYPE_CHECKING:
    from tests.kernel.conftest import Site


def test_listing_imports_nothing(site: Site) -> None:
    site.plugin("one")
    found = site.discovery.plugins
    assert {(f.name, f.value, f.distribution, f.version, f.package) for f in found.values()} == {
        ("one", "heald_one:OnePlugin", "heald-one", "1.0", "heald_one")
    }
    assert "heald_one" not in sys.modules


def test_what_is_installed_is_found_on_the_path_of_the_process(site: Site) -> None:
    site.plugin("one")
    assert Discovery().plugins["one"].distribution == "heald-one"


def test_an_earlier_installation_of_a_distribution_shadows_a_later_one(site: Site) -> None:
    site.install("heald-one", {}, plugins={"one": "new:One"})
    later = site.path / "later"
    later.mkdir()
    other = type(site)(later, site.home)
    other.install("heald-one", {}, plugins={"one": "old:One", "gone": "old:Gone"})
    found = Discovery([str(site.path), str(later)]).plugins
    assert {name: item.value for name, item in found.items()} == {"one": "new:One"}


@pytest.mark.parametrize(
    ("metadata", "entry_points"),
    [
        (None, "[heald.plugins]\na = b:C\n"),
        ("Metadata-Version: 2.1\n", "[heald.plugins]\na = b:C\n"),
        ("Name: torn\nVersion: 1\n", "[heald.plugins]\na = b:C\ngarbage\n"),
    ],
)
def test_a_broken_installation_is_told_of_once_and_passed_over(
    site: Site, caplog: pytest.LogCaptureFixture, metadata: str | None, entry_points: str
) -> None:
    site.plugin("one")
    info = site.path / "torn-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(entry_points)
    if metadata is not None:
        (info / "METADATA").write_text(metadata)
    discovery = site.discovery
    assert list(discovery.plugins) == ["one"]
    assert discovery.group("heald.verbs") == {}
    (message,) = caplog.messages
    assert message.startswith(f"a distribution in {site.path} is unreadable: ")


def test_a_name_of_two_distributions_is_kept_apart_and_the_others_are_usable(site: Site) -> None:
    site.plugin("one")
    site.plugin("two")
    site.install("other-one", {}, plugins={"one": "x:X"})
    discovery = site.discovery
    assert list(discovery.plugins) == ["two"]
    assert str(discovery.conflicts["one"]) == (
        "plugin 'one' comes from heald-one and other-one; uninstall one of them"
    )
    assert len(discovery.every("heald.plugins")) == 3
    with pytest.raises(HealdError) as caught:
        discovery.named("heald.plugins", "one", "plugin")
    assert caught.value.code == "NAME_CONFLICT"


def test_a_name_that_is_not_there_names_the_nearest(site: Site) -> None:
    site.plugin("session")
    with pytest.raises(NotFound, match="no plugin 'sesion'; did you mean 'session'") as caught:
        site.discovery.named("heald.plugins", "sesion", "plugin")
    assert isinstance(caught.value, LookupError)
    assert caught.value.code == "NOT_FOUND"
    assert caught.value.fields() == {"kind": "plugin", "name": "sesion", "known": ("session",)}


def test_the_kernel_imports_no_plugin(site: Site) -> None:
    code = (
        "import sys, importlib, pkgutil, heald\n"
        "for m in pkgutil.iter_modules(heald.__path__):\n"
        "    if m.name != '__main__': importlib.import_module('heald.' + m.name)\n"
        "print(*[m for m in sys.modules if m.startswith('heald_')])"
    )
    ran = site.run(code=code)
    assert (ran.code, ran.out.strip()) == (0, "")
