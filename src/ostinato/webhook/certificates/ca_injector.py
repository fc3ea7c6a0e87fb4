"""CA bundles: telling API servers whom to trust, where they look for it.

That is a field of webhook configurations and of CustomResourceDefinitions with a conversion webhook. It is written when
it differs, and looked at again with every round of the certificates: a manifest that is applied again without it costs
a minute, not the service. What does not exist yet is passed over, and looked for more often: from the moment that it
exists, API servers refuse what they cannot ask about.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ostinato.api.errors import APIError, Conflict, Invalid
from ostinato.api.gvk import GroupVersionKind
from ostinato.webhook.certificates.object_access import ObjectAccess

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5


class BundleTarget(NamedTuple):
    """An object that names the authorities of a webhook server."""

    kind: GroupVersionKind
    name: str


class CaInjector:
    """The targets of one webhook server."""

    def __init__(self, objects: ObjectAccess, targets: Iterable[BundleTarget]) -> None:
        self._objects = objects
        self._targets = tuple(targets)
        self._missing: set[BundleTarget] = set()  # those that did not exist when they were last looked at

    @property
    def complete(self) -> bool:
        """Whether there was every target when it was last looked at."""
        return not self._missing

    async def any_created(self) -> bool:
        """Whether there is one by now of the targets that were missing."""
        for target in self._missing:
            if await self._objects.get(target.kind, target.name) is not None:
                self._missing.discard(target)
                return True
        return False

    async def inject(self, authorities: bytes) -> None:
        """Write the bundle wherever it is not.

        If a target cannot be written, the others are all the same, and its APIError is raised then.
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
                        "%s %s does not exist, so nobody asks; apply what `ostinato manifests` writes: "
                        "its CA bundle is written then",
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
            except (Conflict, Invalid):  # somebody was faster; an Invalid is what servers say of a failed test
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            log.info("%s %s: the CA bundle is written", *_named(target))
            return


def _named(target: BundleTarget) -> tuple[str, str]:
    return target.kind.kind, target.name


def _client_configs(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Where a document says how webhooks are called: pointers, and what is there."""
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
