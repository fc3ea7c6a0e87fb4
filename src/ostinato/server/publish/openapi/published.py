"""Published OpenAPI documents: one for version 2, one per group and version for version 3.

Documents are built on first request. The part of a group and version is cached until its resources change, so that
adding or removing a CustomResourceDefinition is cheap.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.server.publish.discovery import Discovery
from ostinato.server.publish.document import Document
from ostinato.server.publish.openapi import gnostic, v2, v3
from ostinato.server.publish.openapi.client_models import Descriptions
from ostinato.server.publish.openapi.custom import V2, V3, definition_name, definitions_of
from ostinato.server.publish.openapi.definitions import Definitions, references
from ostinato.server.publish.openapi.merging import merged
from ostinato.server.publish.openapi.operations import COMMON_PARAMETERS, Path, camel, document_path, paths_of, tag_of
from ostinato.server.request.negotiate import JSON
from ostinato.server.resources.resource import Resource

Json = dict[str, Any]

_logger = logging.getLogger(__name__)
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_INFO = {"title": "Kubernetes", "version": "1.36"}
_CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_BEARER = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
_VERSION = document_path(
    "/version/", "version", "getCodeVersion", "io.k8s.apimachinery.pkg.version.Info", produces=(JSON,)
)


class OpenAPI:
    """The documents of the resources passed to `update`."""

    def __init__(self) -> None:
        self._descriptions = Descriptions.installed()
        self._definitions = Definitions(self._descriptions)
        self._parts: dict[str, _Part] = {}  # by path below /openapi/v3/, in order
        self._v2: Document | None = None
        self._v2_protobuf: Document | None = None
        self._root: bytes | None = None
        self._remote: Sequence[Mapping[str, Any]] = ()
        self._remote_index: Mapping[str, Any] = {}

    def update(
        self, discovery: Discovery, remote: Sequence[Mapping[str, Any]] = (), index: Mapping[str, Any] | None = None
    ) -> None:
        """Set the served resources.

        - `remote`: parts of the document of version 2 by extension servers. Default to none.
        - `index`: their documents of version 3. Defaults to none.
        """
        self._remote, self._remote_index = [part for part in remote if _is_valid(part)], index or {}
        parts: dict[str, _Part] = {}
        for part in self._wanted(discovery):
            known = self._parts.get(part.path)
            parts[part.path] = known if known is not None and known.same(part) else part
        self._parts = dict(sorted(parts.items()))
        self._v2 = self._v2_protobuf = self._root = None

    def _wanted(self, discovery: Discovery) -> Iterator[_Part]:
        definitions = self._definitions
        yield _Part("api", definitions, (document_path("/api/", "core", "getCoreAPIVersions", _META + "APIVersions"),))
        yield _Part("apis", definitions, (document_path("/apis/", "apis", "getAPIVersions", _META + "APIGroupList"),))
        yield _Part("version", definitions, (_VERSION,))
        for group, every in discovery.groups.items():
            described = {name: [each for each in resources if each.described] for name, resources in every.items()}
            versions = {name: resources for name, resources in described.items() if resources}
            if not versions:
                continue
            custom = all(resource.custom for resources in versions.values() for resource in resources)
            if group and not custom:
                identifier = f"get{camel(group)}APIGroup"
                path = document_path(f"/apis/{group}/", tag_of(group), identifier, _META + "APIGroup")
                yield _Part(f"apis/{group}", definitions, (path,))
            for version, resources in versions.items():
                yield _Part(f"apis/{group}/{version}" if group else f"api/{version}", definitions, (), resources)

    # Version 2.

    def v2(self) -> Document:
        """The document as JSON."""
        if self._v2 is None:
            self._v2 = Document(msgspec.json.encode(self._swagger()))
        return self._v2

    def v2_protobuf(self) -> Document:
        """The document as protobuf, with the same ETag."""
        if self._v2_protobuf is None:
            parts = self._parts.values()
            more_paths, more_definitions = self._more
            body = gnostic.document(
                self._frame(),
                b"".join(part.v2_paths_protobuf for part in parts) + gnostic.encode_paths(more_paths),
                self._definitions.v2_protobuf
                + b"".join(part.v2_definitions_protobuf for part in parts)
                + gnostic.encode_definitions(more_definitions),
            )
            self._v2_protobuf = Document(body, gnostic.CONTENT_TYPE, tag=self.v2().tag)
        return self._v2_protobuf

    def _frame(self) -> Json:
        return {"swagger": "2.0", "info": _INFO, "securityDefinitions": _BEARER, "security": [{"BearerToken": []}]}

    def _own(self) -> tuple[Json, Json]:
        """The paths and definitions of this server."""
        paths: Json = {}
        definitions: Json = dict(self._definitions.v2)
        for part in self._parts.values():
            paths |= part.v2_paths
            definitions |= part.v2_definitions
        return paths, definitions

    @property
    def _more(self) -> tuple[Json, Json]:
        """The paths and definitions of extension servers."""
        return merged(*self._own(), self._remote) if self._remote else ({}, {})

    def _swagger(self) -> Json:
        frame = self._frame()
        paths, definitions = self._own()
        more_paths, more_definitions = self._more
        paths |= more_paths
        definitions |= more_definitions
        parameters = self._parameters
        return {
            "swagger": frame["swagger"],
            "info": frame["info"],
            "paths": paths,
            "definitions": definitions,
            **({"parameters": parameters} if parameters else {}),
            "securityDefinitions": frame["securityDefinitions"],
            "security": frame["security"],
        }

    @cached_property
    def _parameters(self) -> Json:
        return v2.described_parameters(self._descriptions.of_parameters(COMMON_PARAMETERS))

    # Version 3.

    def v3_root(self) -> bytes:
        """The index of the documents; the URL of each contains its hash."""
        if self._root is None:
            paths: Json = {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={part.v3.tag}"}
                for path, part in self._parts.items()
            }
            paths |= self._remote_index
            self._root = msgspec.json.encode({"paths": paths})
        return self._root

    def v3(self, path: str) -> Document | None:
        """One document; None if it does not exist."""
        part = self._parts.get(path)
        return None if part is None else part.v3


def _is_valid(part: Mapping[str, Any]) -> bool:
    """Whether the document of an extension server can be merged: it must not break this server's."""
    try:
        gnostic.encode_paths(part["paths"])
        gnostic.encode_definitions(part["definitions"])
        merged(part["paths"], {}, [part])
    except Exception as error:  # noqa: BLE001 - whatever another server sent
        _logger.warning("OpenAPI document of an extension server is not valid, left out error=%r", error)
        return False
    return True


class _Part:
    """The content of one document of version 3, which is also one part of the document of version 2."""

    def __init__(
        self, path: str, definitions: Definitions, paths: tuple[Path, ...], resources: list[Resource] | None = None
    ) -> None:
        self.path = path
        self._definitions = definitions
        self._fixed = paths
        self._resources = resources or []

    def same(self, other: _Part) -> bool:
        """Whether nothing has changed. A changed resource is a new object."""
        mine, others = self._resources, other._resources
        return len(mine) == len(others) and all(a is b for a, b in zip(mine, others, strict=True))

    @cached_property
    def _paths(self) -> list[Path]:
        found = [*self._fixed]
        if self._resources:
            gvr = self._resources[0].gvr
            name = camel(gvr.group) + gvr.version[:1].upper() + gvr.version[1:]
            if not self._custom:
                tag = tag_of(gvr.group, gvr.version)
                found.append(document_path(f"/{self.path}/", tag, f"get{name}APIResources", _META + "APIResourceList"))
            for resource in self._resources:
                found.extend(path for path in paths_of(resource, self._name_of) if path.operations)
        return found

    def _name_of(self, gvk: GroupVersionKind) -> str:
        name = self._definitions.name_of(gvk)
        return name if name or not self._custom else definition_name(gvk)

    @property
    def _custom(self) -> bool:
        return bool(self._resources) and all(resource.custom for resource in self._resources)

    def _own_definitions(self, prefix: str) -> Json:
        found: Json = {}
        for resource in self._resources:
            if resource.custom:
                found |= definitions_of(resource, prefix)
        return found

    @cached_property
    def v2_paths(self) -> Json:
        return {path.path: v2.path_item(path) for path in self._paths}

    @cached_property
    def v2_paths_protobuf(self) -> bytes:
        return gnostic.encode_paths(self.v2_paths)

    @cached_property
    def v2_definitions(self) -> Json:
        return self._own_definitions(V2)

    @cached_property
    def v2_definitions_protobuf(self) -> bytes:
        return gnostic.encode_definitions(self.v2_definitions)

    @cached_property
    def v3(self) -> Document:
        paths = {path.path: v3.path_item(path) for path in self._paths}
        own = self._own_definitions(V3)
        builtin = self._definitions.v3(references([paths, own], V3))
        body = {
            "openapi": "3.0.0",
            "info": _CUSTOM_INFO if self._custom else _INFO,
            "paths": paths,
            "components": {"schemas": {**own, **builtin}, "securitySchemes": _BEARER},
        }
        return Document(msgspec.json.encode(body))
