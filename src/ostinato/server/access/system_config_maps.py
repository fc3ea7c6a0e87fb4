"""ConfigMaps in kube-system that the server itself writes, through its own API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ostinato.server.request import Answer, Peer, Request, Response

Handle = Callable[[Request], Awaitable[Answer]]
Data = dict[str, str]

_PATH = "/api/v1/namespaces/kube-system/configmaps"
_LOOPBACK = Peer("system:apiserver", ("system:masters",))


async def read_data(handle: Handle, name: str) -> Data | None:
    """The data of a ConfigMap; None if it does not exist."""
    found = await _request(handle, "GET", f"{_PATH}/{name}", None)
    return None if found is None else found.get("data") or {}


async def ensure_data(handle: Handle, name: str, change: Callable[[Data | None], Data | None]) -> None:
    """Create or update a ConfigMap. `change`: from its data, None if it does not exist, to the new one; None: as is."""
    while True:
        found = await _request(handle, "GET", f"{_PATH}/{name}", None)
        data = change(None if found is None else found.get("data") or {})
        if data is None:
            return
        if found is None:
            new = {"metadata": {"name": name, "namespace": "kube-system"}, "data": data}
            written = await _request(handle, "POST", _PATH, new)
        else:
            written = await _request(handle, "PUT", f"{_PATH}/{name}", {**found, "data": data})
        if written is not None:
            return


async def _request(handle: Handle, method: str, path: str, sent: Any) -> dict[str, Any] | None:
    """The decoded response; None if the object does not exist, or was changed by another server."""
    body = b"" if sent is None else msgspec.json.encode(sent)
    headers = {"content-type": "application/json", "user-agent": "kube-apiserver"}
    request = Request(method, path, headers=headers, body=body)
    request.peer = _LOOPBACK
    answer = await handle(request)
    assert isinstance(answer, Response)
    found: dict[str, Any] = msgspec.json.decode(answer.body)
    if answer.status in (404, 409):
        if method == "POST" and answer.status == 404:
            raise RuntimeError(f"ConfigMap in kube-system: cannot write: {found.get('message', '')}")
        return None
    if answer.status >= 300:
        name = path.rpartition("/")[2] if method == "PUT" else sent["metadata"]["name"] if sent else path
        raise RuntimeError(f"ConfigMap kube-system/{name}: cannot write: {found.get('message', '')}")
    return found
