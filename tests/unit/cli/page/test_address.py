"""Where the page listens, and what is printed about it."""

from __future__ import annotations

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.page.address import announce, check_page, page_address


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_the_url_is_printed_without_a_warning_on_the_loopback_address(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    announce("http://page/?token=t", host)
    shown = capsys.readouterr()
    assert shown.out == "page: http://page/?token=t (the token works once)\n"
    assert shown.err == ""


def test_another_address_has_a_warning_without_the_token(capsys: pytest.CaptureFixture[str]) -> None:
    announce("http://192.0.2.1:8420/?token=t", "192.0.2.1")
    shown = capsys.readouterr()
    assert shown.err.startswith("warning: the page listens on 192.0.2.1, over plain HTTP")
    assert "token=t" not in shown.err


def test_addresses_are_checked_before_anything_starts() -> None:
    assert page_address(":8420") == ("127.0.0.1", 8420)
    for wrong in ("8420", ":x", "0.0.0.0:8420"):
        with pytest.raises(CommandError, match="--page"):
            check_page(wrong, writes=False)
    with pytest.raises(CommandError, match="--page-writes needs --page"):
        check_page("", writes=True)
