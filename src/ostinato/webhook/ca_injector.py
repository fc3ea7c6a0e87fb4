"""CA injector: writes the CA bundle into the objects by which API servers call webhooks.

Those are webhook configurations, and CustomResourceDefinitions with a conversion webhook. The bundle is written when it
differs, at every refresh of the certificate: a manifest that is applied without it is repaired within a minute. Missing
targets are checked more often: once they exist, API servers reject requests until the bundle is there.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ostinato.api.errors import APIError, Conflict, Invalid
from ostinato.api.gvk import GroupVersionKind
from ostinato.certificates.object_access import ObjectAccess

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5


class BundleTarget(NamedTuple):
    """An object with the CA bundle of a webhook server."""

    kind: GroupVersionKind
    name: str


class CaInjector:
    """Injects the CA bundle of one webhook server."""

    def __init__(self, objects: ObjectAccess, targets: Iterable[BundleTarget]) -> None:
        self._objects = objects
        self._targets = tuple(targets)
        self._missing: set[BundleTarget] = set()  # absent at the last check

    @property
    def complete(self) -> bool:
        """Whether all targets existed at the last check."""
        return not self._missing

    async def any_created(self) -> bool:
        """Check whether a missing target exists by now."""
        for target in self._missing:
            if await self._objects.get(target.kind, target.name) is not None:
                self._missing.discard(target)
                return True
        return False

    async def inject(self, authorities: bytes) -> None:
        """Write the bundle into all targets that lack it.

        If a target cannot be written, the others still are; then its APIError is raised.
        """
        bundle = base64.b64encode(authorities).decode("ascii")
        failure: APIError | None = None
        for target in self._targets:
            try:
                await self._inject(target, bundle)
            except APIError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _inject(self, target: BundleTarget, bundle: str) -> None:
        for attempt in range(_ATTEMPTS):
            document = await self._objects.get(target.kind, target.name)
            if document is None:
                if target not in self._missing:
                    log.warning(
                        "webhook not registered, apply the output of `ostinato manifests` kind=%s name=%s",
                        *_named(target),
                    )
                self._missing.add(target)
                return
            self._missing.discard(target)
            operations = [
                {"op": "add", "path": f"{path}/caBundle", "value": bundle}
                for path, config in _client_configs(document)
                if config.get("caBundle") != bundle
            ]
            if not operations:
                return
            version = (document.get("metadata") or {}).get("resourceVersion")
            unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
            try:
                await self._objects.patch(target.kind, target.name, [unchanged, *operations])
            except (Conflict, Invalid):  # changed meanwhile; a failed test of a JSON patch is Invalid
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            log.info("CA bundle injected kind=%s name=%s", *_named(target))
            return


def _named(target: BundleTarget) -> tuple[str, str]:
    return target.kind.kind, target.name


def _client_configs(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the clientConfigs of a document, with their JSON pointers."""
    hooks = document.get("webhooks")
    found = [(f"/webhooks/{index}", hook) for index, hook in enumerate(hooks if isinstance(hooks, list) else ())]
    conversion = (document.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        found.append(("/spec/conversion/webhook", conversion.get("webhook")))
    return [
        (f"{path}/clientConfig", hook["clientConfig"])
        for path, hook in found
        if isinstance(hook, dict) and isinstance(hook.get("clientConfig"), dict)
    ]
