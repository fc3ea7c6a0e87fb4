"""OpenAPI documents of extension servers.

- Version 3: the server's own documents, listed in this server's index and forwarded on request.
- Version 2: its document, reduced to the group version, for this server's single document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ostinato.server.aggregation.api_services import ApiService
from ostinato.server.aggregation.fetch import Fetcher, FetchError, FetchOptions
from ostinato.server.aggregation.front_proxy import DESCRIBER

Json = dict[str, Any]

_SECONDS: Final = 60.0
_V3: Final = FetchOptions(user=DESCRIBER, seconds=_SECONDS)
_REFERENCE: Final = "#/definitions/"
_PARAMETER: Final = "#/parameters/"


class RemoteOpenAPI:
    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._v2: dict[str, tuple[str, Json]] = {}  # ETag and document of each APIService
        self._v3: dict[str, Mapping[str, Json]] = {}  # by APIService, entries of the index by path below /openapi/v3/
        self.generation = 0  # incremented on each change

    def v2(self, service: ApiService) -> Json | None:
        """The part of the group version; None if the server has none."""
        known = self._v2.get(service.name)
        return None if known is None else known[1]

    def v3_index(self, service: ApiService) -> Mapping[str, Json]:
        return self._v3.get(service.name, {})

    async def refresh(self, service: ApiService) -> None:
        """Ask the server for its documents; those that it had are kept if it does not answer. Raises FetchError."""
        await self._refresh_v3(service)
        await self._refresh_v2(service)

    def forget(self, service: ApiService) -> None:
        had = self._v2.pop(service.name, None) is not None
        if self._v3.pop(service.name, None) is not None or had:
            self.generation += 1

    async def _refresh_v3(self, service: ApiService) -> None:
        answer = await self._fetcher.get(service, "/openapi/v3", _V3)
        index: Mapping[str, Json] = {}
        if answer.status == 200:
            try:
                paths = msgspec.json.decode(answer.body)["paths"]
                index = {path: entry for path, entry in paths.items() if isinstance(entry, dict)}
            except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
                raise FetchError(f"OpenAPI v3 of {service.name} is not valid") from None
        elif answer.status != 404:
            raise FetchError(f"OpenAPI v3 of {service.name}: status {answer.status}")
        if self._v3.get(service.name) != index:
            self._v3[service.name] = index
            self.generation += 1

    async def _refresh_v2(self, service: ApiService) -> None:
        etag, _ = self._v2.get(service.name, ("", {}))
        options = FetchOptions(user=DESCRIBER, accept="application/json", etag=etag, seconds=_SECONDS)
        answer = await self._fetcher.get(service, "/openapi/v2", options)
        if answer.status == 304:
            return
        if answer.status not in (200, 404):
            raise FetchError(f"OpenAPI v2 of {service.name}: status {answer.status}")
        if answer.status == 404:
            if self._v2.pop(service.name, None) is not None:
                self.generation += 1
            return
        try:
            part = part_of(msgspec.json.decode(answer.body), f"{service.path}/")
        except (msgspec.DecodeError, TypeError, AttributeError):
            raise FetchError(f"OpenAPI v2 of {service.name} is not valid") from None
        if self._v2.get(service.name, ("", None))[1] != part:
            self.generation += 1
        self._v2[service.name] = (answer.etag, part)


def part_of(document: Json, prefix: str) -> Json:
    """The paths with a prefix, and the definitions without those that only other paths use.

    Shared parameters are written out where they are referred to, as in this server's own document.
    """
    shared, definitions = document.get("parameters") or {}, document.get("definitions") or {}
    every = {path: _with_parameters(item, shared) for path, item in (document.get("paths") or {}).items()}
    paths = {path: item for path, item in every.items() if path.startswith(prefix)}
    used, still_used = used_by(every, definitions), used_by(paths, definitions)
    kept = {name: value for name, value in definitions.items() if name not in used or name in still_used}
    return {"paths": paths, "definitions": kept}


def _with_parameters(item: Json, shared: Json) -> Json:
    """A path item whose operations have the shared parameters instead of references to them."""
    made: Json = {}
    for key, value in item.items():
        if key == "parameters":
            made[key] = [_parameter(each, shared) for each in value]
        elif isinstance(value, dict) and "parameters" in value:
            made[key] = {**value, "parameters": [_parameter(each, shared) for each in value["parameters"]]}
        else:
            made[key] = value
    return made


def _parameter(value: Json, shared: Json) -> Json:
    reference = value.get("$ref", "")
    found: Json = shared.get(reference.removeprefix(_PARAMETER), value) if reference.startswith(_PARAMETER) else value
    return found


def used_by(value: Any, definitions: Json) -> set[str]:
    """The names of the definitions that a value refers to, directly or not."""
    found: set[str] = set()
    left = list(references(value))
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += references(definitions.get(name))
    return found


def references(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str) and reference.startswith(_REFERENCE):
                yield reference.removeprefix(_REFERENCE)
            left += each.values()
        elif isinstance(each, list):
            left += each
