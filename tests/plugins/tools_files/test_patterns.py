"""Path patterns against an oracle that tries every split of a path."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heald_tools_files.patterns import PathPattern, PatternInvalid, split_root

names = st.text("ab.", min_size=1, max_size=3)
paths = st.lists(names, min_size=1, max_size=4).map(tuple)
parts = st.one_of(st.just("**"), st.text("ab.*?", min_size=1, max_size=3))


def fits(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(fits(pattern[1:], path[n:]) for n in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and fits(pattern[1:], path[1:])


@given(st.lists(parts, min_size=1, max_size=4).map(tuple), paths)
def test_a_pattern_with_slashes_is_for_whole_paths(
    pattern: tuple[str, ...], path: tuple[str, ...]
) -> None:
    written = [part for part in pattern if part != "."]
    if not written:
        return
    wanted = (*written, "*") if written[-1] == "**" else tuple(written)
    assert PathPattern("./" + "/".join(pattern)).matches(path) == fits(wanted, path)


@given(st.text("ab.*?", min_size=1, max_size=3).filter(lambda text: text != "."), paths)
def test_a_pattern_without_a_slash_is_for_the_last_name(
    pattern: str, path: tuple[str, ...]
) -> None:
    if pattern != "**":
        assert PathPattern(pattern).matches(path) == fnmatchcase(path[-1], pattern)


@given(st.lists(parts, min_size=1, max_size=4), paths)
def test_no_directory_on_the_way_to_a_match_is_passed_over(
    pattern: list[str], path: tuple[str, ...]
) -> None:
    if all(part == "." for part in pattern):
        return
    made = PathPattern("/".join([".", *pattern]))
    if made.matches(path):
        assert all(made.leads_into(path[:n]) for n in range(1, len(path)))


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("*.{py,pyi}", ["a.py", "x/b.pyi"], ["a.p", "a.py/c"]),
        ("{a,{b,c}d}.txt", ["a.txt", "bd.txt", "cd.txt"], ["b.txt"]),
        ("[!a]*", ["b", "x/cc"], ["a", "x/ab"]),
        ("[^a]*", ["b"], ["a"]),
        ("src/", ["src/a", "src/x/b"], ["src", "x/src/a"]),
        ("src/**", ["src/a", "src/x/b"], ["src"]),
        ("**/tests/*.py", ["tests/a.py", "x/y/tests/a.py"], ["tests/x/a.py"]),
        ("./*.md", ["a.md"], ["x/a.md"]),
        (".*", [".env", "x/.env"], ["env"]),
        ("[", ["["], ["a"]),
    ],
)
def test_what_people_write(pattern: str, fitting: list[str], others: list[str]) -> None:
    made = PathPattern(pattern)
    assert [path for path in fitting + others if made.matches(path.split("/"))] == fitting


def test_many_stars_take_no_longer_than_few() -> None:
    assert not PathPattern("/".join(["**"] * 30 + ["*a" * 30 + "b"])).matches(["a" * 200] * 60)


@pytest.mark.parametrize("pattern", ["", "/", "./", ".", "{a,b}" * 9])
def test_a_pattern_that_names_nothing_or_too_much_is_refused(pattern: str) -> None:
    with pytest.raises(PatternInvalid):
        PathPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "split"),
    [
        ("src/*.py", ("", "src/*.py")),
        ("/a/b/*.py", ("/a/b", "./*.py")),
        ("/a/b.py", ("/a", "./b.py")),
        ("/*.py", ("/", "./*.py")),
        ("../*/x", ("..", "./*/x")),
        ("../../b/x", ("../../b", "./x")),
        ("..x/*", ("", "..x/*")),
    ],
)
def test_a_pattern_may_say_where_it_begins(pattern: str, split: tuple[str, str]) -> None:
    assert split_root(pattern) == split
