"""limitedResources of the ResourceQuota configuration: resources that need a covering quota."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ostinato.api.gvk import GroupResource
from ostinato.server.admission.quota.scopes import matching_terms
from ostinato.server.admission.quota.usage import Usage
from ostinato.server.resources.strategy import Json


class LimitedResource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    resource: str = ""
    api_group: str = ""
    match_contains: tuple[str, ...] = ()
    match_scopes: list[Json] = []


class RequiredCoverage:
    """The resources and scopes of an object that quotas must cover."""

    def __init__(
        self, limited: Sequence[LimitedResource], resource: GroupResource, obj: Json, requested: Usage
    ) -> None:
        own = [each for each in limited if GroupResource(each.api_group, each.resource) == resource]
        self.names = {
            name
            for each in own
            for name, amount in requested.items()
            if amount.sign > 0 and any(part in name for part in each.match_contains)
        }
        self.scopes = [term for each in limited for term in matching_terms(resource, obj, each.match_scopes)]

    def uncovered(self, names: Iterable[str], scopes: Sequence[Json]) -> tuple[list[str], list[Json]]:
        """The names and scopes that the given ones do not cover."""
        covered = {term.get("scopeName") for term in scopes}
        return sorted(self.names - set(names)), [term for term in self.scopes if term.get("scopeName") not in covered]
