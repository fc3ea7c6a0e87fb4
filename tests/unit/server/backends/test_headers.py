"""Which headers go on to a backend, and which come back."""

from __future__ import annotations

from pathlib import Path

from ostinato.http.encoding import field_lines
from ostinato.http.response import ResponseParser
from ostinato.server.access.authentication.settings import RequestHeaderSettings
from ostinato.server.backends.headers import IdentityHeaders, is_upgrade, request_headers, response_headers
from ostinato.server.request import Request


def request(**headers: str) -> Request:
    return Request("GET", "/", headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_identity_headers_of_a_front_proxy_are_not_forwarded() -> None:
    proxy = RequestHeaderSettings(
        authority=Path("ca.pem"),
        username_headers=("X-Auth-User",),
        uid_headers=("X-Auth-Uid",),
        group_headers=("X-Auth-Groups",),
        extra_prefixes=("X-Auth-Extra-",),
    )
    sent = request(
        x_auth_user="a",
        x_auth_uid="b",
        x_auth_groups="c",
        x_auth_extra_key="d",
        x_auth_user_agent="e",
        x_remote_user="f",
    )
    assert dict(request_headers(sent, IdentityHeaders.of(proxy))) == {"x-auth-user-agent": "e"}
    assert set(dict(request_headers(sent, IdentityHeaders.of(None)))) > {"x-auth-user", "x-auth-groups"}


def test_hop_by_hop_headers_are_forwarded_in_neither_direction() -> None:
    sent = request(connection="close, X-Hop", x_hop="1", keep_alive="2", te="deflate", x_end="3", cookie="4")
    assert dict(request_headers(sent, IdentityHeaders())) == {"x-end": "3", "cookie": "4"}
    assert dict(request_headers(request(te="deflate, trailers"), IdentityHeaders())) == {"te": "trailers"}
    fields = [("Connection", "x-hop"), ("X-Hop", "1"), ("Set-Cookie", "a"), ("Set-Cookie", "b"), ("Trailer", "T")]
    fields += [("Access-Control-Allow-Origin", "*"), ("Content-Type", "a/b"), ("Transfer-Encoding", "chunked")]
    head = ResponseParser()
    head.feed(b"HTTP/1.1 200 OK\r\n" + field_lines(fields) + b"\r\n")
    assert response_headers(head) == [("Set-Cookie", "a"), ("Set-Cookie", "b")]


def test_names_that_a_backend_may_read_as_an_identity_are_not_forwarded() -> None:
    sent = Request("GET", "/", headers={"x_remote_user": "root", "impersonate_user": "root", "x_custom": "kept"})
    assert dict(request_headers(sent, IdentityHeaders())) == {"x_custom": "kept"}


def test_repeated_headers_are_forwarded_repeatedly() -> None:
    sent = request(x="1", sec_websocket_protocol="base64url.bearer.authorization.k8s.io.AAA")
    sent.repeated = {
        "x": ["1", "2"],
        "sec-websocket-protocol": [
            "base64url.bearer.authorization.k8s.io.AAA",
            "a, base64url.bearer.authorization.k8s.io.B",
            "b",
        ],
    }
    told = list(request_headers(sent, IdentityHeaders()))
    assert told == [("x", "1"), ("x", "2"), ("sec-websocket-protocol", "a"), ("sec-websocket-protocol", "b")]


def test_an_upgrade_needs_the_connection_header() -> None:
    assert is_upgrade(request(connection="keep-alive, Upgrade", upgrade="websocket"))
    assert not is_upgrade(request(connection="keep-alive", upgrade="websocket"))
    assert not is_upgrade(request(connection="Upgrade"))
