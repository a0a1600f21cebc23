"""Which documents the host is composed of, and in which order."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from heald import CompositionError, HealdError, HomeInvalid, Layer, NotFound, home_directory
from heald.profiles import read_profile

if TYPE_CHECKING:
    from tests.kernel.conftest import Ran, Site

ROW = '[[rows]]\nid = "{}"\nplugin = "idle"\n'
PATCH = '[[patch]]\nrow = "{}"\nconfig.merge = {{by = "{}"}}\n'


@pytest.fixture
def packaged(site: Site) -> Site:
    """Install a bundle, a profile that names it, and a plugin."""
    site.plugin("idle", before="@attrs.frozen\nclass C:\n    by: str = ''", base="Plugin[C]")
    files = {
        "heald_pack/__init__.py": "raise RuntimeError('imported')",
        "heald_pack/base.toml": ROW.format("a") + ROW.format("b"),
        "heald_pack/default.toml": 'label = "D"\nbundles = ["base"]\n'
        + PATCH.format("a", "profile"),
    }
    site.install(
        "heald-pack",
        files,
        bundles={"base": "heald_pack:base.toml"},
        profiles={"default": "heald_pack:default.toml"},
    )
    return site


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


async def test_bundles_profile_home_and_patches_apply_in_this_order(packaged: Site) -> None:
    site = packaged
    home = write(site.home / "heald.toml", PATCH.format("a", "home") + PATCH.format("b", "home"))
    patch = write(site.home / "p.toml", PATCH.format("b", "patch"))
    layer = Layer("made", patches=[{"row": "b", "config": {"merge": {"by": "program"}}}])
    profile = read_profile(site.home, site.discovery, patches=[patch, layer])
    assert [layer.name for layer in profile.layers] == [
        "heald-pack:heald_pack:base.toml",
        "heald-pack:heald_pack:default.toml",
        str(home),
        str(patch),
        "made",
    ]
    assert profile.name == "default"
    async with site.host(patches=(patch, layer), strict=True) as host:
        rows = {row.id: row.planned.row for row in host.composition.mounted}
    assert rows["a"].config == {"by": "home"}
    assert rows["b"].config == {"by": "program"}
    assert rows["a"].origin_of("config.by") == str(home)
    assert rows["a"].origin_of("plugin") == "heald-pack:heald_pack:base.toml"


def test_a_persons_profile_comes_before_a_packaged_one_and_the_home_can_choose(
    packaged: Site,
) -> None:
    site = packaged
    write(site.home / "profiles" / "mine" / "heald.toml", ROW.format("c"))
    write(site.home / "profiles" / "default" / "heald.toml", "bundles = []\n" + ROW.format("d"))
    names = [layer.name for layer in read_profile(site.home, site.discovery).layers]
    assert names == [str(site.home / "profiles/default/heald.toml")]

    write(site.home / "heald.toml", 'profile = "mine"')
    assert read_profile(site.home, site.discovery).name == "mine"
    assert read_profile(site.home, site.discovery, name="default").name == "default"


@pytest.mark.parametrize("name", ["defualt", "../x", "..", ".", "a/b"])
def test_an_unknown_profile_names_the_nearest(packaged: Site, name: str) -> None:
    write(packaged.home / "heald.toml", "")
    with pytest.raises(NotFound) as caught:
        read_profile(packaged.home, packaged.discovery, name=name)
    assert caught.value.known == ("default",)


@pytest.mark.parametrize(
    ("where", "text", "fault", "message"),
    [
        ("heald.toml", 'profile = "defualt"', ("PROFILE_UNKNOWN", "profile"), "'default'"),
        ("heald.toml", "profile = 3", ("LAYER_INVALID", "profile"), "expected str, got int 3"),
        ("heald.toml", "profil = 'x'", ("LAYER_KEY_UNKNOWN", "profil"), "'profile'"),
        ("profiles/default/heald.toml", "bundles = 3", ("LAYER_INVALID", "bundles"), "got int 3"),
        ("profiles/default/heald.toml", "bundles = [3]", ("LAYER_INVALID", "bundles"), "of names"),
        (
            "profiles/default/heald.toml", 'bundles = ["bas"]',
            ("BUNDLE_UNKNOWN", "bundles"), "did you mean 'base'",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_persons_file_names_file_and_field(
    packaged: Site, where: str, text: str, fault: tuple[str, str], message: str
) -> None:
    path = write(packaged.home / where, text)
    with pytest.raises(CompositionError) as caught:
        read_profile(packaged.home, packaged.discovery)
    (found,) = caught.value.faults
    assert (found.code, found.field, found.file) == (*fault, str(path))
    assert message in found.message


def test_a_heald_toml_that_is_a_directory_is_told_not_passed_over(packaged: Site) -> None:
    (packaged.home / "heald.toml").mkdir(parents=True)
    with pytest.raises(CompositionError, match="Is a directory"):
        read_profile(packaged.home, packaged.discovery)


@pytest.mark.parametrize("value", ["heald_gone:base.toml", "heald_pack:gone.toml"])
def test_a_bundle_whose_file_is_gone_names_the_distribution_to_reinstall(
    packaged: Site, value: str
) -> None:
    packaged.install("heald-torn", {}, bundles={"torn": value})
    write(packaged.home / "profiles/default/heald.toml", 'bundles = ["torn"]')
    with pytest.raises(HealdError, match="reinstall the distribution heald-torn") as caught:
        read_profile(packaged.home, packaged.discovery)
    assert caught.value.code == "DATA_FILE_MISSING"


@pytest.mark.parametrize("value", ["a b:c", ""])
def test_a_bundle_that_names_nothing_that_could_be_there_is_refused(
    packaged: Site, value: str
) -> None:
    packaged.install("heald-torn", {}, bundles={"torn": value})
    write(packaged.home / "profiles/default/heald.toml", 'bundles = ["torn"]')
    with pytest.raises(HealdError, match="torn"):
        read_profile(packaged.home, packaged.discovery)


def test_a_bundle_of_two_distributions_names_both(packaged: Site) -> None:
    packaged.install("other-pack", {}, bundles={"base": "heald_pack:base.toml"})
    with pytest.raises(HealdError, match="heald-pack and other-pack") as caught:
        read_profile(packaged.home, packaged.discovery)
    assert caught.value.code == "NAME_CONFLICT"


async def test_a_home_that_is_a_file_is_refused(site: Site) -> None:
    site.plugin("idle")
    site.home.write_text("")
    with pytest.raises(HomeInvalid, match="is not a directory") as caught:
        async with site.host("idle"):
            raise AssertionError("composed")
    assert caught.value.code == "HOME_INVALID"
    with pytest.raises(HomeInvalid):
        read_profile(site.home, site.discovery)


def test_the_home_is_what_the_variable_says_or_the_platforms_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert home_directory({"HEALD_HOME": "here"}) == tmp_path / "here"
    assert home_directory({"HEALD_HOME": "~/x"}) == Path.home() / "x"
    assert home_directory({"HEALD_HOME": ""}).name == "heald"
    assert home_directory({}).is_absolute()
    with pytest.raises(HomeInvalid, match="name a directory with --home or HEALD_HOME"):
        home_directory({"HEALD_HOME": "~no-such-person/x"})


def test_somebody_without_a_home_directory_can_still_ask_for_help(site: Site) -> None:
    nobody = """
        import os, pwd, sys

        def unknown(uid):
            raise KeyError(uid)

        pwd.getpwuid = unknown
        for name in ("HOME", "HEALD_HOME", "XDG_DATA_HOME"):
            os.environ.pop(name, None)
        from heald.cli import main
        main()
    """

    def run(*args: str) -> Ran:
        return site.run(*args, code=dedent(nobody))

    assert run("--version").code == 0
    assert run("--help").code == 0
    listed = run("plugins", "list")
    assert (listed.code, "heald_" in listed.out) == (1, True)
    assert "HOME_INVALID" in listed.err
    composed = run("compose")
    assert composed.code == 1
    assert composed.err.startswith("heald: HOME_INVALID: ")
    assert "name a directory with --home or HEALD_HOME" in composed.err
