"""Cluster authentication trust: publish the ConfigMap kube-system/extension-apiserver-authentication.

Extension API servers read from it which authorities sign client certificates, and the request header settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ostinato.server.access.authentication.settings import AuthenticationSettings, RequestHeaderSettings
from ostinato.server.access.system_config_maps import Data, Handle, ensure_data

_NAME = "extension-apiserver-authentication"
_PROXIES = "requestheader-client-ca-file"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


async def publish(
    handle: Handle,
    settings: AuthenticationSettings,
    authority: bytes,
    proxy: RequestHeaderSettings | None,
    *,
    adds: bool,
) -> None:
    """Create or update the ConfigMap.

    - `handle`: the server's; `authority`: PEM.
    - `proxy`: how this server, as a front proxy, authenticates and names users.
    - `adds`: keep the authorities of the front proxies of other servers.
    """
    data = published(settings, authority, proxy)

    def change(found: Data | None) -> Data | None:
        wanted = data
        if adds and found is not None and _PROXIES in data:
            wanted = {**data, _PROXIES: _union(found.get(_PROXIES, ""), data[_PROXIES])}
        return None if found == wanted else wanted

    await ensure_data(handle, _NAME, change)


def published(
    settings: AuthenticationSettings, authority: bytes, proxy: RequestHeaderSettings | None
) -> dict[str, str]:
    clients = authority.decode()
    if settings.client_authority is not None:
        clients += settings.client_authority.read_text()
    data = {"client-ca-file": clients}
    if proxy is not None:
        data |= {
            _PROXIES: proxy.authority.read_text(),
            "requestheader-allowed-names": _list(proxy.allowed_names),
            "requestheader-username-headers": _list(proxy.username_headers),
            "requestheader-group-headers": _list(proxy.group_headers),
            "requestheader-extra-headers-prefix": _list(proxy.extra_prefixes),
        }
        if proxy.uid_headers:
            data["requestheader-uid-headers"] = _list(proxy.uid_headers)
    return data


def _union(found: str, own: str) -> str:
    """All certificates of two bundles, each once."""
    blocks = dict.fromkeys(_CERTIFICATE.findall(found + own))
    return "".join(f"{block}\n" for block in blocks)


def _list(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()
