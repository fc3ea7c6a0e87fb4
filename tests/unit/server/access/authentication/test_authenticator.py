from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.errors import Unauthorized
from ostinato.server.access.authentication.authenticator import Authenticator
from ostinato.server.access.authentication.identity import ANONYMOUS
from ostinato.server.access.authentication.tokens.static import TokenFileError
from ostinato.server.request import Peer, Request, User


def ask(authenticator: Authenticator, peer: Any = None, **headers: str) -> User:
    request = Request("GET", "/", headers={name.replace("_", "-"): value for name, value in headers.items()})
    request.peer = peer
    return authenticator.authenticate_now(request)


@pytest.fixture
def authenticator() -> Authenticator:
    authenticator = Authenticator()
    authenticator.add("secret", User("jane", "1", ("dev",)))
    return authenticator


JANE = User("jane", "1", ("dev", "system:authenticated"))


@pytest.mark.parametrize("header", ["Bearer secret", "bearer secret", " BEARER secret  more"])
def test_a_bearer_token_authenticates_its_user(authenticator: Authenticator, header: str) -> None:
    assert ask(authenticator, authorization=header) == JANE


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer secret1", "Bearer s\udce9"])
def test_an_unknown_token_is_unauthorized(authenticator: Authenticator, header: str) -> None:
    with pytest.raises(Unauthorized):
        ask(authenticator, authorization=header)


@pytest.mark.parametrize("header", ["", "Basic secret", "Bearer", "Bearer ", "secret"])
def test_a_request_without_a_token_is_anonymous(authenticator: Authenticator, header: str) -> None:
    assert ask(authenticator, authorization=header) is ANONYMOUS


def test_a_client_certificate_takes_precedence_over_a_token(authenticator: Authenticator) -> None:
    user = ask(authenticator, Peer("kubernetes-admin", ("system:masters",)), authorization="Bearer secret")
    assert user == User("kubernetes-admin", "", ("system:masters", "system:authenticated"))


def test_a_certificate_without_a_common_name_does_not_authenticate(authenticator: Authenticator) -> None:
    assert ask(authenticator, Peer("", ("system:masters",))) is ANONYMOUS


def test_a_browser_passes_its_token_as_a_websocket_protocol(authenticator: Authenticator) -> None:
    token = base64.urlsafe_b64encode(b"secret").decode().rstrip("=")
    protocol = "base64url.bearer.authorization.k8s.io."
    upgrade = {"upgrade": "WebSocket", "connection": "keep-alive, Upgrade"}
    assert ask(authenticator, sec_websocket_protocol=f"binary.k8s.io, {protocol}{token}", **upgrade) == JANE
    refused = (
        f"binary.k8s.io, {protocol}%%%",
        f"binary.k8s.io, {protocol}_w",
        f"binary.k8s.io, {protocol}{token}=",
        f"binary.k8s.io, {protocol}{token}, {protocol}{token}",
        f"{protocol}{token}",
    )
    for offered in refused:
        with pytest.raises(Unauthorized):
            ask(authenticator, sec_websocket_protocol=offered, **upgrade)
    assert ask(authenticator, sec_websocket_protocol="binary.k8s.io", **upgrade) is ANONYMOUS


@pytest.mark.parametrize(
    "headers", [{}, {"upgrade": "websocket"}, {"connection": "upgrade"}, {"upgrade": "h2c", "connection": "upgrade"}]
)
def test_a_websocket_token_without_an_upgrade_authenticates_no_one(
    authenticator: Authenticator, headers: dict[str, str]
) -> None:
    token = base64.urlsafe_b64encode(b"secret").decode().rstrip("=")
    offered = f"binary.k8s.io, base64url.bearer.authorization.k8s.io.{token}"
    assert ask(authenticator, sec_websocket_protocol=offered, **headers) is ANONYMOUS


def test_a_certificate_that_is_not_valid_is_an_error_unless_a_token_is(authenticator: Authenticator) -> None:
    expired = Peer("kubernetes-admin", ("system:masters",), not_after=10.0).expired()
    with pytest.raises(Unauthorized):
        ask(authenticator, expired)
    assert ask(authenticator, expired, authorization="Bearer secret") == JANE


def read(tmp_path: Path, text: str) -> Authenticator:
    path = tmp_path / "tokens.csv"
    path.write_text(text)
    authenticator = Authenticator()
    authenticator.add_file(path)
    return authenticator


def test_a_token_file_is_read_as_kube_apiserver_does(tmp_path: Path) -> None:
    authenticator = read(
        tmp_path, 't1,admin,1,"system:masters"\n\nt2,jane,2,"a, b,"\nt3,joe,\n"t,4",jim,4,a,surplus\nt1,later,9\n'
    )
    groups = {token: ask(authenticator, authorization=f"Bearer {token}").groups for token in ("t2", "t3", "t,4")}
    assert groups == {
        "t2": ("a", "b", "system:authenticated"),
        "t3": ("system:authenticated",),
        "t,4": ("a", "system:authenticated"),
    }
    assert ask(authenticator, authorization="Bearer t1").name == "later"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("t1,admin,1\nt2,jane\n", r"tokens.csv: line 2: 2 columns, want at least 3; write token,user,uid"),
        ("t1,admin,1\n,jane,2\n", r"tokens.csv: line 2: the token is empty"),
        ("t1,,1\n", r"tokens.csv: line 1: the user is empty"),
        ('t1,admin,1\n"t2,jane', r"tokens.csv: not a CSV file"),
    ],
)
def test_an_invalid_token_file_is_reported_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(TokenFileError, match=problem):
        read(tmp_path, text)


def test_a_missing_or_binary_token_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match=r"cannot read .*/nothing: No such file or directory"):
        Authenticator().add_file(tmp_path / "nothing")
    (tmp_path / "binary").write_bytes(b"\xff\xfe,a,b\n")
    with pytest.raises(TokenFileError, match="not a CSV file"):
        Authenticator().add_file(tmp_path / "binary")
