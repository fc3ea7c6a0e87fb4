"""Operations of each path of a group and version, independent of the OpenAPI version.

kubectl reads the PATCH operation of a kind: its query parameters show whether the server supports field validation and
dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.server.request.negotiate import JSON, PROTOBUF, YAML
from ostinato.server.resources.resource import Resource, Subresource

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
STATUS = _META + "Status"
TEXT = ""  # in place of a definition: the response is text

BUILTIN = (JSON, YAML, PROTOBUF)
_CUSTOM = (JSON, YAML)

_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_DELETE_MANY = tuple(sorted({*_DELETE, *_LIST} - {"allowWatchBookmarks", "watch"}))

COMMON_PARAMETERS = tuple(sorted({*_LIST, *_WRITE, *_DELETE, "force", "pretty"}))  # of ordinary resources

# Query parameters of the connect subresources.
_STREAMED = ("container", "stderr", "stdin", "stdout", "tty")
_CONNECTED = {
    "attach": _STREAMED,
    "exec": ("command", *_STREAMED),
    "log": (
        "container",
        "follow",
        "insecureSkipTLSVerifyBackend",
        "limitBytes",
        "previous",
        "sinceSeconds",
        "stream",
        "tailLines",
        "timestamps",
    ),
    "portforward": ("ports",),
    "proxy": ("path",),
}

# Types of the parameters that are not strings.
_INTEGERS = ("gracePeriodSeconds", "limit", "limitBytes", "ports", "sinceSeconds", "tailLines", "timeoutSeconds")
_BOOLEANS = (
    *("allowWatchBookmarks", "follow", "force", "ignoreStoreReadErrorWithClusterBreakingPotential"),
    *("insecureSkipTLSVerifyBackend", "orphanDependents", "previous", "sendInitialEvents", "stderr", "stdin"),
    *("stdout", "timestamps", "tty", "watch"),
)
PARAMETER_TYPES = {**dict.fromkeys(_INTEGERS, "integer"), **dict.fromkeys(_BOOLEANS, "boolean")}

_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_CUSTOM_PATCHES = (_PATCHES[0], _PATCHES[1], _PATCHES[3])
_STREAMS = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_METHODS = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}

Namer = Callable[[GroupVersionKind], str]  # returns the name of a kind's definition, "" if it has none


class Operation(msgspec.Struct, frozen=True):
    """One method of one path."""

    method: str
    identifier: str
    answers: tuple[tuple[str, str], ...]  # status code and definition; TEXT for text
    produces: tuple[str, ...]
    action: str = ""
    kind: GroupVersionKind | None = None
    parameters: tuple[str, ...] = ()  # query parameters
    body: str = ""  # the definition of the body, "" without a body
    body_required: bool = True
    consumes: tuple[str, ...] = ("*/*",)


class Path(msgspec.Struct, frozen=True):
    """One path and its operations. Segments in braces are parameters."""

    path: str
    tag: str
    operations: tuple[Operation, ...]
    pretty: bool = True  # the response is indented on request

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(sorted(part[1:-1] for part in self.path.split("/") if part.startswith("{")))


def camel(group: str) -> str:
    """A group in operation ids: rbac.authorization.k8s.io is RbacAuthorization, the core group is Core."""
    parts = (group.removesuffix(".k8s.io") or "core").replace("-", ".").split(".")
    return "".join(part[:1].upper() + part[1:] for part in parts)


def tag_of(group: str, version: str = "") -> str:
    name = camel(group)
    return name[0].lower() + name[1:] + (f"_{version}" if version else "")


def document_path(path: str, tag: str, identifier: str, definition: str, produces: tuple[str, ...] = BUILTIN) -> Path:
    """A path of a read-only document: discovery, version."""
    operation = Operation("get", identifier, (("200", definition),), produces, consumes=produces)
    return Path(path, tag, (operation,), pretty=False)


def paths_of(resource: Resource, name_of: Namer) -> Iterator[Path]:
    """The paths of a resource and its subresources."""
    return _Writer(resource, name_of).paths()


class _Writer:
    """Builds the paths of one resource."""

    def __init__(self, resource: Resource, name_of: Namer) -> None:
        gvr = resource.gvr
        self._resource = resource
        self._name_of = name_of
        self._media = _CUSTOM if resource.custom else BUILTIN
        self._definition = name_of(resource.gvk)
        self._prefix = camel(gvr.group) + gvr.version[:1].upper() + gvr.version[1:]
        self._scope = "Namespaced" if resource.namespaced else ""
        self._tag = tag_of(gvr.group, gvr.version)
        self._root = f"/apis/{gvr.group}/{gvr.version}" if gvr.group else f"/api/{gvr.version}"

    def paths(self) -> Iterator[Path]:
        resource = self._resource
        plural = resource.gvr.resource
        base = f"{self._root}/namespaces/{{namespace}}/{plural}" if resource.namespaced else f"{self._root}/{plural}"
        if resource.namespaced and "list" in resource.verbs:
            everywhere = self._list(f"list{self._prefix}{resource.gvk.kind}ForAllNamespaces")
            yield self._path(f"{self._root}/{plural}", (everywhere,))
        yield self._path(base, tuple(self._collection()))
        yield self._path(f"{base}/{{name}}", tuple(self._object()))
        for subresource in resource.subresources.values():
            yield from self._subresource(f"{base}/{{name}}/{subresource.name}", subresource)

    def _path(self, path: str, operations: tuple[Operation, ...]) -> Path:
        return Path(path, self._tag, operations)

    def _list(self, identifier: str) -> Operation:
        resource = self._resource
        listed = self._name_of(GroupVersionKind(resource.gvk.group, resource.gvk.version, resource.list_kind))
        produces = self._media if resource.custom else (*self._media, *_STREAMS)
        answers = (("200", listed),)
        return Operation("get", identifier, answers, produces, "list", resource.gvk, parameters=_LIST)

    def _collection(self) -> Iterator[Operation]:
        verbs, kind = self._resource.verbs, self._resource.gvk
        name = f"{self._prefix}{self._scope}{kind.kind}"
        if "list" in verbs:
            yield self._list("list" + name)
        if "create" in verbs:
            yield self._write("create", "create" + name, kind, self._definition)
        if "deletecollection" in verbs:
            identifier = f"delete{self._prefix}Collection{self._scope}{kind.kind}"
            yield self._delete("deletecollection", identifier, _DELETE_MANY, STATUS, ("200",))

    def _object(self) -> Iterator[Operation]:
        resource = self._resource
        name = f"{self._prefix}{self._scope}{resource.gvk.kind}"
        if "get" in resource.verbs:
            yield self._read("read" + name, resource.gvk, self._definition)
        if "update" in resource.verbs:
            yield self._write("update", "replace" + name, resource.gvk, self._definition)
        if "delete" in resource.verbs:
            answer = self._definition if resource.strategy.returns_deleted else STATUS
            yield self._delete("delete", "delete" + name, _DELETE, answer, ("200", "202"))
        if "patch" in resource.verbs:
            yield self._write("patch", "patch" + name, resource.gvk, self._definition)

    def _subresource(self, path: str, subresource: Subresource) -> Iterator[Path]:
        title = subresource.name[:1].upper() + subresource.name[1:]
        name = f"{self._scope}{self._resource.gvk.kind}{title}"
        if subresource.kind.kind.endswith("Options"):  # a connect subresource: its response has no schema
            yield Path(path, self._tag, tuple(self._connections(subresource, name)), pretty=False)
            if subresource.name == "proxy":
                below = tuple(self._connections(subresource, name + "WithPath"))
                yield Path(path + "/{path}", self._tag, below, pretty=False)
            return
        operations: list[Operation] = []
        # All operations of a custom resource refer to its own kind, those of its scale subresource too.
        kind = self._resource.gvk if self._resource.custom else subresource.kind
        definition = self._name_of(subresource.kind)
        for verb in ("get", "create", "update", "patch"):
            if verb not in subresource.verbs:
                continue
            identifier = f"{_IDENTIFIERS[verb]}{self._prefix}{name}"
            if verb != "get":
                operations.append(self._write(verb, identifier, kind, definition))
            elif subresource.name == "log":
                produces = ("text/plain", *self._media)
                answers = (("200", TEXT),)
                parameters = _CONNECTED["log"]
                operations.append(Operation("get", identifier, answers, produces, "get", kind, parameters))
            else:
                operations.append(self._read(identifier, kind, definition))
        yield self._path(path, tuple(operations))

    def _connections(self, subresource: Subresource, name: str) -> Iterator[Operation]:
        for verb in subresource.verbs:
            method = _METHODS[verb]
            identifier = f"connect{self._prefix}{method.title()}{name}"
            answers = (("200", TEXT),)
            parameters = _CONNECTED.get(subresource.name, ())
            yield Operation(method, identifier, answers, ("*/*",), "connect", subresource.kind, parameters)

    def _read(self, identifier: str, kind: GroupVersionKind, definition: str) -> Operation:
        parameters = ("resourceVersion",) if self._resource.custom else ()
        return Operation("get", identifier, (("200", definition),), self._media, "get", kind, parameters)

    def _write(self, verb: str, identifier: str, kind: GroupVersionKind, definition: str) -> Operation:
        method = _METHODS[verb]
        consumes: tuple[str, ...] = self._media if self._resource.custom else ("*/*",)
        parameters: tuple[str, ...] = _WRITE
        body = definition
        codes: tuple[str, ...] = ("200", "201", "202") if verb == "create" else ("200", "201")
        if verb == "patch":
            parameters, body = (*_WRITE, "force"), _META + "Patch"
            consumes = _CUSTOM_PATCHES if self._resource.custom else _PATCHES
            codes = ("200",) if self._resource.custom else codes
        answers = tuple((code, definition) for code in codes)
        return Operation(method, identifier, answers, self._media, method, kind, parameters, body, consumes=consumes)

    def _delete(
        self, action: str, identifier: str, parameters: tuple[str, ...], definition: str, codes: tuple[str, ...]
    ) -> Operation:
        return Operation(
            "delete",
            identifier,
            tuple((code, definition) for code in codes),
            self._media,
            action,
            self._resource.gvk,
            parameters,
            _META + "DeleteOptions",
            body_required=False,
            consumes=self._media if self._resource.custom else ("*/*",),
        )


_IDENTIFIERS = {"get": "read", "create": "create", "update": "replace", "patch": "patch"}
