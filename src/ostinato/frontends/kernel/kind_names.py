"""Kind names: a kind as files of other tools write it, looked up by discovery.

`find_kind(mapper, "apps/v1", "deploy")`: kind, plural, singular or short name in any case; without an apiVersion the
server's preferred one.
"""

from __future__ import annotations

from ostinato.api.object import KindInfo
from ostinato.client.discovery.mapping import Mapper, NoSuchResource


async def find_kind(mapper: Mapper, api_version: str, name: str) -> KindInfo:
    """Return the kind. Raises NoSuchResource if the server has none, AmbiguousResource if it has several."""
    if not api_version:
        return await mapper.find(name)
    found = await _find(mapper, api_version, name.lower())
    if found is None:
        await mapper.refresh()
        found = await _find(mapper, api_version, name.lower())
    if found is None:
        raise NoSuchResource(
            f"the server has no kind {name!r} of apiVersion {api_version!r}; "
            "create its CustomResourceDefinition first, or correct apiVersion and kind"
        )
    return found


async def _find(mapper: Mapper, api_version: str, name: str) -> KindInfo | None:
    catalogue = await mapper.catalogue()
    for version in catalogue.versions:
        if str(version.version) == api_version:
            infos = [each.info for each in version.resources]
            for info in infos:
                if name in (info.gvk.kind.lower(), info.plural, info.singular):
                    return info
            return next((info for info in infos if name in info.short_names), None)
    return None
