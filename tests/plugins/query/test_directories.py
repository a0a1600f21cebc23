"""Which working directory is below which."""

from __future__ import annotations

import pytest

from heald_query.directories import below


@pytest.mark.parametrize(
    ("directory", "cwd"),
    [
        ("/loom", "/loom"),
        ("/loom", "/loom/"),
        ("/loom/", "/loom"),
        ("/loom", "/loom/warp/weft"),
        ("/loom", "//loom//warp"),
        ("/loom", "/loom/./warp"),
        ("/loom", "/other/../loom/warp"),
        ("/loom/warp/..", "/loom/weft"),
        ("/", "/loom"),
        ("/", "/"),
        ("//", "/loom"),
        ("/loom", "/loom/..warp"),
        ("loom", "loom"),
    ],
)
def test_a_directory_is_below_itself_and_what_it_is_in(directory: str, cwd: str) -> None:
    assert below(directory)(cwd)


@pytest.mark.parametrize(
    ("directory", "cwd"),
    [
        ("/loom", "/loom2"),
        ("/loom", "/loo"),
        ("/loom", "/"),
        ("/loom/", "/loom2"),
        ("/loom", "/loom/.."),
        ("/loom", "/loom/../secret"),
        ("/loom", "/loom/warp/../../secret"),
        ("/loom", "loom"),
        ("/loom", "/LOOM"),
        ("/", "loom"),
        ("loom", "loom/warp"),
        ("loom", "/loom"),
        ("", "/loom"),
        ("/loom", ""),
        ("/loom", None),
    ],
)
def test_what_only_looks_alike_is_not_below(directory: str, cwd: str | None) -> None:
    assert not below(directory)(cwd)
