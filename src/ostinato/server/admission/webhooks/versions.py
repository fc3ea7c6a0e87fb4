"""Conversion of objects between the request's version and a webhook's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ostinato.api.errors import APIError, InternalError
from ostinato.server.admission.policies.matching import Attributes
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.admission.webhooks.matching import Match
    from ostinato.server.resources.resource import Resource


async def converted_for_webhook(match: Match, attributes: Attributes) -> Attributes:
    """The attributes with objects converted to the webhook's version."""
    own = attributes.context.resource
    if match.resource is own or match.kind == attributes.kind:  # subresources have one kind in all versions
        return attributes
    obj, old = [
        None if each is None else await converted(each, own, match.resource)
        for each in (attributes.obj, attributes.old)
    ]
    return attributes._replace(obj=obj, old=old)


async def converted(obj: Json, source: Resource, target: Resource) -> Json:
    """Convert an object between equivalent resources; InternalError if that fails."""
    if not source.custom:
        return target.object(msgspec.json.encode(source.stored(obj)))
    if source.conversion is None:
        return {**obj, "apiVersion": target.gvk.api_version}
    try:
        (made,) = await source.conversion.between([obj], target.gvk.api_version)
    except APIError as error:
        raise InternalError.of(error) from None
    return made
