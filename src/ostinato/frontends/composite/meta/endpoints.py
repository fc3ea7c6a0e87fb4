"""Endpoints of webhooks: address, credentials and limits, from a definition and the Secrets it names.

- A webhook's own credentials are used alone; without any, those of the first `endpointConfigs` entry of its host.
- Secrets and ConfigMaps are read before the first call, and again after a call that failed.
- A Service is called by its name in the cluster's DNS. Where this machine does not resolve it, its cluster IP is used;
  `Resolve` replaces addresses, as `curl --resolve` does.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from ostinato.api.errors import APIError
from ostinato.api.time import Duration, TimeError
from ostinato.cache.client import CachedClient
from ostinato.client.config.secret import Secret
from ostinato.client.views import Unstructured
from ostinato.frontends.composite.meta.definitions import (
    CABundle,
    Credentials,
    EndpointConfig,
    SecretRef,
    Webhook,
)
from ostinato.frontends.kernel.sync import DeciderError
from ostinato.frontends.kernel.transport.http import Endpoint, basic

_TIMEOUT: Final = 10.0  # seconds
_PORTS: Final = {"http": 80, "https": 443}

Resolve = Mapping[str, str]
"""Addresses, HOST:PORT, by HOST or HOST:PORT of a hook's URL."""


def url_of(webhook: Webhook) -> str:
    """Return the URL of a webhook. Raises DeciderError."""
    if webhook.url is not None:
        return webhook.url
    service = webhook.service
    if service is None or webhook.path is None:
        raise DeciderError("webhook: neither url, nor service and path; give one of them")
    if not service.name or not service.namespace:
        raise DeciderError("webhook: service: name and namespace are required")
    port = 80 if service.port is None else service.port
    path = webhook.path if webhook.path.startswith("/") else f"/{webhook.path}"
    return f"{service.protocol or 'http'}://{service.name}.{service.namespace}:{port}{path}"


def timeout_of(webhook: Webhook) -> float:
    """Return the timeout in seconds; the default if it is not positive. Raises DeciderError if it is no duration."""
    if webhook.timeout is None:
        return _TIMEOUT
    try:
        seconds = Duration.parse(webhook.timeout).seconds
    except TimeError:
        raise DeciderError(f"webhook: timeout: {webhook.timeout!r} is not a duration such as 10s") from None
    return seconds if seconds > 0 else _TIMEOUT


class Endpoints:
    """Resolves webhooks with a client."""

    def __init__(self, client: CachedClient, resolve: Resolve) -> None:
        self._client = client
        self._resolve = resolve

    async def of(self, webhook: Webhook, configs: Sequence[EndpointConfig]) -> Endpoint:
        """Return the endpoint of a webhook. Raises DeciderError if it cannot be determined."""
        url = url_of(webhook)
        credentials: Credentials | None = webhook
        if not any((webhook.ca_bundle, webhook.client_tls, webhook.authorization, webhook.basic_auth)):
            credentials = matching(url, configs)
        found: dict[str, Any] = {}
        if credentials is not None:
            found = await self._resolved(credentials)
        return Endpoint(url=url, timeout=timeout_of(webhook), address=await self._address(url, webhook), **found)

    async def _resolved(self, credentials: Credentials) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if credentials.authorization is not None and credentials.basic_auth is not None:
            raise DeciderError("webhook: authorization and basicAuth are mutually exclusive; remove one")
        if credentials.ca_bundle is not None:
            found["ca"] = await self._authority(credentials.ca_bundle)
        if (tls := credentials.client_tls) is not None:
            found["certificate"] = await self._read("Secret", "clientTLS", tls.secret_ref, tls.cert_key)
            key = await self._read("Secret", "clientTLS", tls.secret_ref, tls.private_key_key)
            found["key"] = Secret(key.decode("latin-1"))
        if (authorization := credentials.authorization) is not None:
            scheme = authorization.type.strip() or "Bearer"
            if scheme.lower() == "basic":
                raise DeciderError("webhook: authorization: type Basic is not supported; use basicAuth")
            ref = authorization.secret_ref
            value = await self._read("Secret", "authorization", ref, ref.key)
            found["authorization"] = Secret(f"{scheme} {value.decode('utf-8', 'replace').strip()}")
        if (auth := credentials.basic_auth) is not None:
            user = await self._read("Secret", "basicAuth", auth.secret_ref, auth.username_key)
            password = await self._read("Secret", "basicAuth", auth.secret_ref, auth.password_key)
            if b":" in user:
                raise DeciderError("webhook: basicAuth: the username contains a colon, which is not allowed")
            found["authorization"] = basic(user.decode().strip(), password.decode().strip())
        return found

    async def _authority(self, bundle: CABundle) -> bytes:
        given = [each for each in (bundle.inline, bundle.secret_ref, bundle.config_map_ref) if each is not None]
        if len(given) != 1:
            raise DeciderError("webhook: caBundle: exactly one of inline, secretRef and configMapRef is required")
        if bundle.inline is not None:
            return bundle.inline.encode()
        kind = "Secret" if bundle.secret_ref is not None else "ConfigMap"
        ref = bundle.secret_ref or bundle.config_map_ref
        assert ref is not None
        return await self._read(kind, "caBundle", ref, ref.key)

    async def _read(self, kind: str, field: str, ref: SecretRef, key: str) -> bytes:
        where = f"webhook: {field}: {kind} {ref.namespace}/{ref.name}"
        try:
            found = await self._client.live.get(Unstructured.of("v1", kind), ref.name, namespace=ref.namespace)
            value = (found.get("data") or {}).get(key)
            if not value:
                raise DeciderError(f"{where}: key {key!r} is missing or empty")
            return base64.b64decode(value) if kind == "Secret" else str(value).encode()
        except (APIError, binascii.Error) as error:
            raise DeciderError(f"{where}: {error}") from None

    async def _address(self, url: str, webhook: Webhook) -> str:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        replaced = self._resolve.get(f"{host}:{port}") or self._resolve.get(host)
        if replaced:
            return replaced if ":" in replaced else f"{replaced}:{port}"
        if webhook.url is not None or webhook.service is None or await _resolves(host, port):
            return ""
        view, reference = Unstructured.of("v1", "Service"), webhook.service
        try:
            service = await self._client.live.get(view, reference.name, namespace=reference.namespace)
        except APIError:
            return ""  # the call reports that the name is unknown, and is retried
        address = (service.get("spec") or {}).get("clusterIP")
        return f"{address}:{port}" if address and address != "None" else ""


def matching(url: str, configs: Sequence[EndpointConfig]) -> EndpointConfig | None:
    """Return the first entry for the host of a URL; a default port may be left out on either side."""
    parts = urlsplit(url)
    host, default = (parts.hostname or "").lower(), _PORTS.get(parts.scheme)
    port = parts.port or default
    names = {f"{host}:{port}"} | ({host} if port == default else set())
    return next((each for each in configs if each.host.lower() in names), None)


async def _resolves(host: str, port: int) -> bool:
    try:
        await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True
