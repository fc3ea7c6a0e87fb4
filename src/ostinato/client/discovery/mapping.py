"""REST mapping: from a kind, or from a name as typed by a user, to the resource on a server.

    await mapper.kind(GroupVersionKind("example.dev", "v1", "Widget"))
    await mapper.find("deploy")            # also deployments, Deployment, deployments.apps, deployments.v1.apps

- Discovery is read on the first lookup, and again when a kind is not found, so that a new definition is found. It is
  read at most once per second.
- A kind that is not served any more is forgotten: it may be defined again with another name or scope.
- A name is a plural or singular resource name, otherwise a short name. If several groups have it, the core group comes
  first, then the server's order, with preferred versions before others. Two resources of one group version with the
  same name are `AmbiguousResource`.
- A group may be abbreviated to a prefix: `storageclass.storage`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from ostinato.api.gvk import GroupKind, GroupResource, GroupVersionKind, GroupVersionResource
from ostinato.api.object import KindInfo
from ostinato.client.discovery.discovery import ApiResource, Catalogue, Discovery
from ostinato.client.transport.exchange import NoSuchKind
from ostinato.world import Clock

REFRESH_INTERVAL: Final = 1.0  # seconds between two reads of discovery
_CORE: Final = ("", "v1")
_logger = logging.getLogger("ostinato.client")


class NoSuchResource(LookupError):  # noqa: N818
    """The server has no resource of this name."""


class AmbiguousResource(LookupError):  # noqa: N818
    """The name matches several resources of one group version."""


class Mapper:
    def __init__(self, discovery: Discovery, clock: Clock) -> None:
        self._discovery = discovery
        self._clock = clock
        self._reading = asyncio.Lock()
        self._began = float("-inf")  # when the read of _catalogue began
        self._tried = float("-inf")  # when the last read began, successful or not
        self._catalogue = Catalogue()
        self._kinds: dict[GroupVersionKind, KindInfo] = {}

    async def catalogue(self) -> Catalogue:
        """Return all kinds of the server, as of the last read."""
        if self._began == float("-inf"):
            await self.refresh()
        return self._catalogue

    async def refresh(self) -> None:
        """Read discovery, or wait for a concurrent read that began after this call."""
        called_at = self._clock.monotonic()
        async with self._reading:
            if self._began >= called_at:
                return
            await self._clock.sleep(self._tried + REFRESH_INTERVAL - self._clock.monotonic())
            self._tried = self._clock.monotonic()
            self._catalogue = await self._discovery.read()
            self._began = self._tried
            self._kinds = {
                each.info.gvk: each.info for version in self._catalogue.versions for each in reversed(version.resources)
            }

    async def kind(self, gvk: GroupVersionKind) -> KindInfo:
        """Return the mapping of a kind. Raises `NoSuchKind`, or the error of the group version in discovery."""
        found = self._kinds.get(gvk)
        if found is None:
            await self.refresh()
            found = self._kinds.get(gvk)
        if found is None:
            failure = self._catalogue.failed.get(gvk.group_version)
            raise failure or NoSuchKind.of_kind(gvk)
        return found

    def forget(self, gvk: GroupVersionKind) -> None:
        """Forget a kind, so that the next lookup reads discovery."""
        self._kinds.pop(gvk, None)

    async def preferred(self, kind: GroupKind) -> KindInfo:
        """Return the mapping of a kind in the server's preferred version."""
        found = self._first(lambda info: info.gvk.group_kind == kind)
        if found is None:
            await self.refresh()
            found = self._first(lambda info: info.gvk.group_kind == kind)
        if found is None:
            raise NoSuchResource(f'no matches for kind "{kind.kind}" in group "{kind.group}"')
        return found

    async def find(self, name: str) -> KindInfo:
        """Return the mapping of a name, as in `kubectl get NAME`."""
        found = self._named(name)
        if found is None:
            await self.refresh()
            found = self._named(name)
        if found is None:
            raise NoSuchResource(f'the server doesn\'t have a resource type "{name}"')
        return found

    async def category(self, name: str) -> list[KindInfo]:
        """Return the kinds of a category such as `all`, each in its preferred version."""
        await self.catalogue()
        found: dict[GroupResource, KindInfo] = {}
        for each in self._ranked():
            if name in each.info.categories:
                found.setdefault(each.info.gvr.group_resource, each.info)
        return list(found.values())

    def _ranked(self) -> Iterable[ApiResource]:
        """All resources by precedence: core v1, then groups and versions in the server's order."""
        versions = sorted(
            self._catalogue.versions, key=lambda each: (each.version.group, each.version.version) != _CORE
        )
        return (resource for each in versions for resource in each.resources)

    def _first(self, matches: Callable[[KindInfo], bool]) -> KindInfo | None:
        return next((each.info for each in self._ranked() if matches(each.info)), None)

    def _named(self, text: str) -> KindInfo | None:
        full, partial = GroupVersionResource.parse(text.lower())
        if full is not None:
            found = self._choose(
                text, full.resource, lambda gvk: (gvk.group, gvk.version) == (full.group, full.version)
            )
            if found is not None:
                return found
        group = partial.group
        if not group:
            return self._choose(text, partial.resource, lambda _: True)
        exactly = self._choose(text, partial.resource, lambda gvk: gvk.group == group)
        return exactly or self._choose(text, partial.resource, lambda gvk: gvk.group.startswith(group))

    def _choose(self, text: str, name: str, within: Callable[[GroupVersionKind], bool]) -> KindInfo | None:
        """Return the first resource of this name; short names only if no other matches."""
        infos = [each.info for each in self._ranked() if within(each.info.gvk)]
        long = [info for info in infos if name in (info.plural, info.singular)]
        if long:
            _check_unambiguous(text, long)
            return long[0]
        short = [info for info in infos if name in info.short_names]
        others = {str(info.gvr.group_resource) for info in short}
        if len(others) > 1:
            chosen = short[0].gvr.group_resource
            _logger.warning(
                "ambiguous short name name=%s chosen=%s others=%s",
                text,
                chosen,
                ",".join(sorted(others - {str(chosen)})),
            )
        return short[0] if short else None


def _check_unambiguous(text: str, matching: list[KindInfo]) -> None:
    version = matching[0].gvk.group_version
    same = {info.plural for info in matching if info.gvk.group_version == version}
    if len(same) > 1:
        raise AmbiguousResource(f"{text} matches multiple resources of {version}: {', '.join(sorted(same))}")
