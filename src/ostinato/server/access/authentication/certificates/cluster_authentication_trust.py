"""Cluster authentication trust: publish the ConfigMap kube-system/extension-apiserver-authentication.

Extension API servers read from it which authorities sign client certificates, and the request header settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.server.access.system_config_maps import Handle, ensure_data

_NAME = "extension-apiserver-authentication"


async def publish(handle: Handle, settings: AuthenticationSettings, authority: bytes) -> None:
    """Create or update the ConfigMap. `handle`: the server's; `authority`: PEM."""
    data = published(settings, authority)
    await ensure_data(handle, _NAME, lambda found: None if found == data else data)


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
