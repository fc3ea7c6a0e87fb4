"""Errors of admission plugins, and resource matching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.api.errors import Forbidden
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


def forbidden(context: Context, obj: Json | None, why: object) -> Forbidden:
    """A Forbidden error that names the object, if it has a name yet; deletecollection names none."""
    if context.route.verb == "deletecollection":
        return Forbidden.of(context.resource.group_resource, "Unknown", why)
    metadata: Json = (obj or {}).get("metadata", {})
    name = context.route.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return Forbidden.of(context.resource.group_resource, name, why)


def is_of(context: Context, group: str, resource: str) -> bool:
    """Whether a request is for a resource, not for one of its subresources."""
    return (
        context.resource.gvr.resource == resource
        and context.resource.gvr.group == group
        and not (context.route.subresource)
    )
