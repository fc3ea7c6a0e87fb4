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
from ostinato.webhook.certificates.objects import Objects

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5


class Place(NamedTuple):
    """An object that names the authorities of a webhook server."""

    kind: GroupVersionKind
    name: str


class CaBundles:
    """The places of one webhook server."""

    def __init__(self, objects: Objects, places: Iterable[Place]) -> None:
        self._objects = objects
        self._places = tuple(places)
        self._missing: set[Place] = set()  # those that did not exist when they were last looked at

    @property
    def complete(self) -> bool:
        """Whether there was every place when it was last looked at."""
        return not self._missing

    async def appeared(self) -> bool:
        """Whether there is one by now of the places that were missing."""
        for place in self._missing:
            if await self._objects.get(place.kind, place.name) is not None:
                self._missing.discard(place)
                return True
        return False

    async def put(self, authorities: bytes) -> None:
        """Write the bundle wherever it is not.

        If a place cannot be written, the others are all the same, and its APIError is raised then.
        """
        bundle = base64.b64encode(authorities).decode("ascii")
        failure: APIError | None = None
        for place in self._places:
            try:
                await self._put(place, bundle)
            except APIError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _put(self, place: Place, bundle: str) -> None:
        for attempt in range(_ATTEMPTS):
            document = await self._objects.get(place.kind, place.name)
            if document is None:
                if place not in self._missing:
                    log.warning(
                        "%s %s does not exist, so nobody asks; apply what `ostinato manifests` writes: "
                        "its CA bundle is written then",
                        *_named(place),
                    )
                self._missing.add(place)
                return
            self._missing.discard(place)
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
                await self._objects.patch(place.kind, place.name, [unchanged, *operations])
            except (Conflict, Invalid):  # somebody was faster; an Invalid is what servers say of a failed test
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            log.info("%s %s: the CA bundle is written", *_named(place))
            return


def _named(place: Place) -> tuple[str, str]:
    return place.kind.kind, place.name


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
