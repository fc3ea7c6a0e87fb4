"""Three-way merge of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.scaffold.merge import has_markers, merge

LABELS = ("yours", "template 2")


def merged(base: str, ours: str, theirs: str) -> tuple[str, int]:
    result = merge(*("".join(f"{each}\n" for each in text) for text in (base, ours, theirs)), labels=LABELS)
    return result.text.replace("\n", ""), result.conflicts


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("abcde", "abcde", "abcde", "abcde"),
        ("abcde", "aXcde", "abcde", "aXcde"),
        ("abcde", "abcde", "abcYe", "abcYe"),
        ("abcde", "aXcde", "abcYe", "aXcYe"),
        ("abcde", "aXXcde", "abce", "aXXce"),
        ("abcde", "aXcde", "aXcde", "aXcde"),
        ("abcde", "abcdeX", "Yabcde", "YabcdeX"),
        ("abcde", "", "abcde", ""),
        ("", "", "new", "new"),
        ("abcde", "acde", "abcd", "acd"),
        ("abcdef", "abXdef", "abXdeY", "abXdeY"),
    ],
)
def test_changes_of_both_sides_are_merged(base: str, ours: str, theirs: str, expected: str) -> None:
    assert merged(base, ours, theirs) == (expected, 0)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("abc", "aXc", "aYc", "a<<<<<<< yoursX=======Y>>>>>>> template 2c"),
        ("abc", "ac", "aYc", "a<<<<<<< yours=======Y>>>>>>> template 2c"),
        ("abcd", "aXcd", "abYd", "a<<<<<<< yoursXc=======bY>>>>>>> template 2d"),
        ("ab", "abX", "abY", "ab<<<<<<< yoursX=======Y>>>>>>> template 2"),
        ("", "xay", "xby", "x<<<<<<< yoursa=======b>>>>>>> template 2y"),
    ],
)
def test_a_conflict_keeps_both_sides_between_markers(base: str, ours: str, theirs: str, expected: str) -> None:
    text, conflicts = merged(base, ours, theirs)
    assert (text, conflicts) == (expected, 1)


def test_a_last_line_without_a_newline_does_not_join_a_marker() -> None:
    result = merge("a\n", "b", "c", labels=LABELS)
    assert result.text == "<<<<<<< yours\nb\n=======\nc\n>>>>>>> template 2\n"
    assert has_markers(result.text)
    assert not has_markers("a << b\n=======\n")


texts = st.text("abc", max_size=12)


@given(texts, texts, texts)
def test_the_laws_of_a_merge(base: str, ours: str, theirs: str) -> None:
    assert merged(base, ours, base) == (ours, 0)
    assert merged(base, base, theirs) == (theirs, 0)
    assert merged(base, ours, ours) == (ours, 0)
    one, other = merged(base, ours, theirs), merged(base, theirs, ours)
    assert one[1] == other[1]
    if not one[1]:
        assert one == other


@given(texts, texts, texts)
def test_no_line_of_ours_is_lost_but_where_theirs_removed_it(base: str, ours: str, theirs: str) -> None:
    text, conflicts = merged(base, ours, theirs)
    assert set(ours) - set(base) <= set(text)
    if conflicts:
        assert text.count("<<<<<<< yours") == text.count(">>>>>>> template 2") == conflicts
