"""Cluster authentication trust: publish the ConfigMap kube-system/extension-apiserver-authentication.

Extension API servers read from it which authorities sign client certificates, and the request header settings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.server.request import Answer, Peer, Request, Response

_NAME = "extension-apiserver-authentication"
_PATH = "/api/v1/namespaces/kube-system/configmaps"
_LOOPBACK = Peer("system:apiserver", ("system:masters",))


async def publish(
    handle: Callable[[Request], Awaitable[Answer]], settings: AuthenticationSettings, authority: bytes
) -> None:
    """Create or update the ConfigMap. `handle`: the server's; `authority`: PEM."""
    data = published(settings, authority)
    found = await _request(handle, "GET", f"{_PATH}/{_NAME}", None)
    if found is None:
        await _request(handle, "POST", _PATH, {"metadata": {"name": _NAME, "namespace": "kube-system"}, "data": data})
    elif found.get("data") != data:
        await _request(handle, "PUT", f"{_PATH}/{_NAME}", {**found, "data": data})


def published(settings: AuthenticationSettings, authority: bytes) -> dict[str, str]:
    clients = authority.decode()
    if settings.client_authority is not None:
        clients += settings.client_authority.read_text()
    data, proxy = {"client-ca-file": clients}, settings.front_proxy
    if proxy is not None:
        data |= {
            "requestheader-client-ca-file": proxy.authority.read_text(),
            "requestheader-allowed-names": _list(proxy.allowed_names),
            "requestheader-username-headers": _list(proxy.username_headers),
            "requestheader-group-headers": _list(proxy.group_headers),
            "requestheader-extra-headers-prefix": _list(proxy.extra_prefixes),
        }
        if proxy.uid_headers:
            data["requestheader-uid-headers"] = _list(proxy.uid_headers)
    return data


def _list(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()


async def _request(
    handle: Callable[[Request], Awaitable[Answer]], method: str, path: str, sent: Any
) -> dict[str, Any] | None:
    """The decoded response; None for 404."""
    body = b"" if sent is None else msgspec.json.encode(sent)
    headers = {"content-type": "application/json", "user-agent": "kube-apiserver"}
    request = Request(method, path, headers=headers, body=body)
    request.peer = _LOOPBACK
    answer = await handle(request)
    assert isinstance(answer, Response)
    if answer.status == 404:
        return None
    found: dict[str, Any] = msgspec.json.decode(answer.body)
    if answer.status >= 300:
        raise RuntimeError(f"ConfigMap kube-system/{_NAME}: cannot write: {found.get('message', '')}")
    return found
