"""Mapping: from a kind, or from what people type, to the resource on a server.

    await mapper.kind(GroupVersionKind("example.dev", "v1", "Widget"))
    await mapper.find("deploy")            # also deployments, Deployment, deployments.apps, deployments.v1.apps

- The server is asked when something is first looked up, and again when something is not found: a definition that was
  made a moment ago is found. However many look for what is not there, the server is asked once a second at most.
- A kind that turns out not to be where it was is forgotten: it may have been defined anew, under another name or scope.
- Names are those of resources, in plural or singular, else short names. Where several groups have a name, the core
  goes first, then the order in which the server ranks them, with preferred versions before others. Two resources of one
  version that share a name are `AmbiguousResource`.
- Of a group, its first words are enough: `storageclass.storage`.
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

REFRESH_INTERVAL: Final = 1.0  # seconds between two readings of the catalogue
_CORE: Final = ("", "v1")
_logger = logging.getLogger("ostinato.client")


class NoSuchResource(LookupError):  # noqa: N818 - what is the matter, as people say it
    """The server has nothing of this name."""


class AmbiguousResource(LookupError):  # noqa: N818
    """The name fits several resources equally well."""


class Mapper:
    def __init__(self, discovery: Discovery, clock: Clock) -> None:
        self._discovery = discovery
        self._clock = clock
        self._reading = asyncio.Lock()
        self._began = float("-inf")  # when the reading of the catalogue began that we have
        self._tried = float("-inf")  # when the last reading began, be it that it failed
        self._catalogue = Catalogue()
        self._kinds: dict[GroupVersionKind, KindInfo] = {}

    async def catalogue(self) -> Catalogue:
        """All that the server has, from the last time that it was asked."""
        if self._began == float("-inf"):
            await self.refresh()
        return self._catalogue

    async def refresh(self) -> None:
        """Ask the server, unless somebody does so just now."""
        asked = self._clock.monotonic()
        async with self._reading:
            if self._began >= asked:
                return
            await self._clock.sleep(self._tried + REFRESH_INTERVAL - self._clock.monotonic())
            self._tried = self._clock.monotonic()
            self._catalogue = await self._discovery.read()
            self._began = self._tried
            self._kinds = {
                each.info.gvk: each.info for version in self._catalogue.versions for each in reversed(version.resources)
            }

    async def kind(self, gvk: GroupVersionKind) -> KindInfo:
        """The resource of a kind; `NoSuchKind` if the server has none, or why it could not say."""
        found = self._kinds.get(gvk)
        if found is None:
            await self.refresh()
            found = self._kinds.get(gvk)
        if found is None:
            failure = self._catalogue.failed.get(gvk.group_version)
            raise failure or NoSuchKind.of_kind(gvk)
        return found

    def forget(self, gvk: GroupVersionKind) -> None:
        """Ask the server about this kind when it is looked up next."""
        self._kinds.pop(gvk, None)

    async def preferred(self, kind: GroupKind) -> KindInfo:
        """The resource of a kind in the version that the server prefers."""
        found = self._first(lambda info: info.gvk.group_kind == kind)
        if found is None:
            await self.refresh()
            found = self._first(lambda info: info.gvk.group_kind == kind)
        if found is None:
            raise NoSuchResource(f'no matches for kind "{kind.kind}" in group "{kind.group}"')
        return found

    async def find(self, name: str) -> KindInfo:
        """The resource that a name means, as in `kubectl get NAME`."""
        found = self._named(name)
        if found is None:
            await self.refresh()
            found = self._named(name)
        if found is None:
            raise NoSuchResource(f'the server doesn\'t have a resource type "{name}"')
        return found

    async def category(self, name: str) -> list[KindInfo]:
        """The kinds that belong to a category such as `all`, each in its preferred version."""
        await self.catalogue()
        found: dict[GroupResource, KindInfo] = {}
        for each in self._ranked():
            if name in each.info.categories:
                found.setdefault(each.info.gvr.group_resource, each.info)
        return list(found.values())

    def _ranked(self) -> Iterable[ApiResource]:
        """Every resource, the likeliest first: core v1, then as the server ranks groups and versions."""
        versions = sorted(
            self._catalogue.versions, key=lambda each: (each.version.group, each.version.version) != _CORE
        )
        return (resource for each in versions for resource in each.resources)

    def _first(self, fits: Callable[[KindInfo], bool]) -> KindInfo | None:
        return next((each.info for each in self._ranked() if fits(each.info)), None)

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
        """The first resource with this name; short names count if nothing else fits."""
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
                "%s could also be %s; taken for %s", text, ", ".join(sorted(others - {str(chosen)})), chosen
            )
        return short[0] if short else None


def _check_unambiguous(text: str, fitting: list[KindInfo]) -> None:
    version = fitting[0].gvk.group_version
    same = {info.plural for info in fitting if info.gvk.group_version == version}
    if len(same) > 1:
        raise AmbiguousResource(f"{text} matches multiple resources of {version}: {', '.join(sorted(same))}")
