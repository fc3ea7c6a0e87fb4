"""Links of proxied pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.server.backends.html_links import LinkRewriter


def rewritten(page: bytes, *sizes: int) -> bytes:
    rewriter = LinkRewriter(lambda url: f"/proxy{url}" if url.startswith("/") else url)
    pieces, at = [], 0
    for size in (*sizes, len(page)):
        pieces.append(rewriter.feed(page[at : at + size]))
        at += size
    return b"".join(pieces) + rewriter.close()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (b'<a href="/rewriteme">test</a>', b'<a href="/proxy/rewriteme">test</a>'),
        (b"<A HREF='/x'>", b'<A HREF="/proxy/x">'),
        (b"<img alt=/no src=/x>", b'<img alt=/no src="/proxy/x">'),
        (b'<a href="relative"><a href="https://elsewhere/x">', b'<a href="relative"><a href="https://elsewhere/x">'),
        (b'<a href="/x?a=1&amp;b=2">', b'<a href="/proxy/x?a=1&amp;b=2">'),
        (b'<!-- <a href="/x"> --><a href="/y">', b'<!-- <a href="/x"> --><a href="/proxy/y">'),
        (
            b'<script src="/s">"<a href=\'/x\'>"</script><a href="/y">',
            b'<script src="/proxy/s">"<a href=\'/x\'>"</script><a href="/proxy/y">',
        ),
        (b'<div href="/x" data-src="/y">1 < 2 <b', b'<div href="/x" data-src="/y">1 < 2 <b'),
        (b'<a title="a > b" href="/x">', b'<a title="a > b" href="/proxy/x">'),
    ],
)
def test_links_to_paths_are_rewritten_and_nothing_else(page: bytes, expected: bytes) -> None:
    assert rewritten(page) == expected


PAGE = b'<p><!-- < --><a title="a > b" href="/x">x</a><style>a > b </style ><img src=/y></p><title>1</title>'


@given(st.lists(st.integers(1, 20), max_size=40))
def test_a_page_may_arrive_in_pieces_of_any_size(sizes: list[int]) -> None:
    assert rewritten(PAGE, *sizes) == rewritten(PAGE)


@given(st.lists(st.sampled_from([b"<", b">", b"a", b"!--", b"-->", b"script", b"/", b'"', b"'", b" ", b"=x"])))
def test_pages_without_links_are_not_changed(parts: list[bytes]) -> None:
    page = b"".join(parts)
    assert rewritten(page, *([1] * len(page))) == page


def test_a_tag_without_end_is_passed_on() -> None:
    page = b'<a href="/x' + b"y" * (1 << 17)
    assert rewritten(page, 1000, 1 << 16) == page
