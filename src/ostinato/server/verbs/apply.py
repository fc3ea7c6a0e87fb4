"""apply: server-side apply; creates the object if it does not exist.

The body is YAML. The resource's field manager merges it and decides field ownership; the result is written like any
other create or update.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.apply import ApplyError, FieldManager
from ostinato.api.errors import AlreadyExists, BadRequest, Conflict, NotFound, Unknown
from ostinato.api.wire import DecodeError
from ostinato.api.wire.duplicate_keys import repeats_keys
from ostinato.server.flow.heavy import is_heavy
from ostinato.server.request import Response, body
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import Form
from ostinato.server.request.options import WriteOptions
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch, json_type
from ostinato.server.schema.decoding.unstructured import restore_error
from ostinato.server.schema.structural.pruning import read_metadata
from ostinato.server.verbs import write
from ostinato.server.verbs.create import create_object
from ostinato.server.verbs.update import change_object, requested_version

_PROBLEMS = "error converting YAML to JSON: yaml: unmarshal errors:\n"


async def apply(context: Context, data: bytes, options: WriteOptions, form: Form) -> Response:
    """Apply a configuration to the object that the path names."""
    resource = context.resource
    manager = resource.managers[context.route.subresource]
    change = ApplyChange(context, manager, data, options)
    context.heavy = context.heavy or (data[:1] != b"{" and is_heavy(data, "yaml"))
    while True:
        try:
            if _exists(context):
                return await _change(context, change, options, form)
            if context.route.subresource:
                raise NotFound.of(resource.group_resource, context.route.name)
            return await _create(context, change, options, form)
        except _ConcurrentChange:
            continue


def _exists(context: Context) -> bool:
    return context.collection.newest(context.key) is not None


class _ConcurrentChange(Exception):  # noqa: N818
    """The object was created or deleted concurrently."""


async def _change(context: Context, change: ApplyChange, options: WriteOptions, form: Form) -> Response:
    try:
        return await change_object(context, change, options, form, tracked=True)
    except NotFound:
        if not _exists(context):
            raise _ConcurrentChange from None
        raise


async def _create(context: Context, change: ApplyChange, options: WriteOptions, form: Form) -> Response:
    obj = await context.in_thread(lambda: change(None)) if context.heavy else change(None)
    requested_version(obj["metadata"])
    obj["metadata"].pop("resourceVersion", None)  # ignored for an object that does not exist
    try:
        return await create_object(context, obj, options, form, tracked=True)
    except AlreadyExists:
        if _exists(context):
            raise _ConcurrentChange from None
        raise


class ApplyChange:
    """A configuration, decoded once, applied to the current object; None if it does not exist."""

    def __init__(self, context: Context, manager: FieldManager, data: bytes, options: WriteOptions) -> None:
        self._context = context
        self._manager = manager
        self._data = data
        self._options = options
        self._config: Json | None = None
        self._repeated = ""
        self._now = write.now(context.world.clock)

    def __call__(self, old: Json | None) -> Json:
        known, route = self._context.applies, self._context.route
        if known is None:
            return self._applied(old)
        return known.get((self._manager, route, self._data, self._options, self._now), old, self._applied)

    def _applied(self, old: Json | None) -> Json:
        context, options = self._context, self._options
        if self._config is None:
            self._config, self._repeated = _read(self._data)
        try:
            applied = self._manager.apply(
                old, self._config, options.field_manager, self._now, force=bool(options.force)
            )
        except ApplyError as error:
            raise Unknown.of(str(error)) from error
        self._report_duplicates()
        obj = {**applied, "metadata": dict(applied["metadata"])} if applied is old else self._shaped(applied)
        uid = obj["metadata"].get("uid")
        if old is None and uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise Conflict.of(context.resource.group_resource, context.route.name, why)
        write.set_namespace(context, obj)
        write.check_name(context, obj)
        return obj

    def _shaped(self, applied: Json) -> Json:
        """The applied object, decoded and defaulted; it shares nothing with the configuration.

        A custom object is not pruned again, except for its metadata: a map that lost its last field is null, which
        schema validation may reject.
        """
        resource = self._context.resource
        try:
            if resource.custom:
                data = msgspec.json.encode(applied)
                obj: Json = msgspec.json.decode(data)
                if b"null" in data:  # metadata never has nulls
                    obj["metadata"], _ = read_metadata(obj["metadata"])
            else:
                obj, _ = body.typed(resource, applied)
        except (TypeMismatch, BadValue) as error:
            raise self._inconvertible(restore_error(error)) from error
        resource.strategy.default(obj)
        return obj

    def _inconvertible(self, why: str) -> Unknown:
        assert self._config is not None
        gvk, metadata = self._context.resource.gvk, self._config.get("metadata") or {}
        named = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {gvk}"
        return Unknown.of(
            f"failed to convert new object ({named}) to proper version: "
            f"unable to convert unstructured object to {gvk}: {why}"
        )

    def _report_duplicates(self) -> None:
        """Report duplicate keys of the configuration according to `fieldValidation`."""
        if not self._repeated or self._options.field_validation == "Ignore":
            return
        why = f"error converting YAML to JSON: {self._repeated}"
        if self._options.field_validation == "Strict":
            raise BadRequest.of(f"error strict decoding YAML: {why}")
        self._context.request.warnings.extend(line.strip() for line in why.removeprefix(_PROBLEMS).split("\n"))


def _read(data: bytes) -> tuple[Json, str]:
    """Decode the configuration in a body; return it and its duplicate keys as a message, "" if there are none."""
    from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415 - loads only where it is needed

    repeated = ""
    try:
        if data[:1] == b"{":  # most are JSON, which decodes faster
            config: Any = decode_yaml(data)
            strictly = repeats_keys(data, config)
        else:
            config, strictly = None, True
        if strictly:
            try:
                config = decode_yaml(data, strict=True)
            except DecodeError as error:
                repeated = str(error)
                config = decode_yaml(data)
    except DecodeError as error:
        raise BadRequest.of(f"error decoding YAML: error converting YAML to JSON: {error}") from error
    if config is None:
        return {}, repeated
    if not isinstance(config, dict):
        raise BadRequest.of(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_type(config)} into Go value of type map[string]interface {{}}"
        )
    return config, repeated
