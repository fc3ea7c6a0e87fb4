"""Kinds by their resource names, as the definitions name them: apiVersion and plural."""

from __future__ import annotations

from ostinato.api.gvk import GroupVersion
from ostinato.api.object import KindInfo
from ostinato.client.discovery.mapping import Mapper
from ostinato.client.views import Unstructured
from ostinato.frontends.kernel.sync import DeciderError


class NoSuchResource(DeciderError):  # noqa: N818 - as in ostinato.client
    """The server does not serve the resource, or not yet."""


async def resolve(mapper: Mapper, api_version: str, resource: str) -> Unstructured:
    """Return the kind of a resource; discovery is read again if it is unknown. Raises NoSuchResource."""
    try:
        version = GroupVersion.parse(api_version)
    except ValueError as error:
        raise DeciderError(f"apiVersion: {error}", permanent=True) from None
    info = await _find(mapper, version, resource)
    if info is None:
        await mapper.refresh()
        info = await _find(mapper, version, resource)
    if info is None:
        raise NoSuchResource(
            f"resource {resource!r} of apiVersion {api_version!r} is not served; create its definition, "
            "and use the plural as the resource's name"
        )
    return Unstructured(info.gvk, info)


async def _find(mapper: Mapper, version: GroupVersion, resource: str) -> KindInfo | None:
    for each in (await mapper.catalogue()).versions:
        if each.version == version:
            return next((found.info for found in each.resources if found.info.plural == resource), None)
    return None
