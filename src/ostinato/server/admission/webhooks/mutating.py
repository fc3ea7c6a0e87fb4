"""Dispatcher of mutating webhooks: called in sequence, each with the object as the previous ones left it.

When a webhook changes the object, earlier plugins and webhooks with reinvocationPolicy IfNeeded that were called before
the last change are invoked again.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.api.apply.managedfields.entries import ManagedFieldsError, decode
from ostinato.api.errors import InternalError, Invalid
from ostinato.api.gvk import GroupKind
from ostinato.api.patch import PatchError, json_patch
from ostinato.api.schema import builtin_schemas
from ostinato.api.status import Status
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.wire import DecodeError, decode_json
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.policies.matching import Attributes
from ostinato.server.admission.webhooks.matching import Match, Webhook, WebhookMatcher
from ostinato.server.admission.webhooks.observing import counted
from ostinato.server.admission.webhooks.review import (
    WebhookCallFailed,
    WebhookDenied,
    WebhookPatch,
    call_webhook,
)
from ostinato.server.admission.webhooks.versions import converted, converted_for_webhook
from ostinato.server.request import body
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding import builtin
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch, json_type
from ostinato.server.schema.decoding.objects import not_registered
from ostinato.server.verbs import write

if TYPE_CHECKING:
    from ostinato.server.admission.webhooks.plugins import WebhookDependencies
    from ostinato.server.resources.lister import Lister

_logger = logging.getLogger(__name__)
_SCHEME = "pkg/runtime/scheme.go:111"
_OPTIONS: Final = {  # CONNECT options: type of the value or its items, and the Go type name
    "stdin": (bool, "bool"),
    "stdout": (bool, "bool"),
    "stderr": (bool, "bool"),
    "tty": (bool, "bool"),
    "container": (str, "string"),
    "command": (str, "[]string"),
    "ports": (int, "[]int32"),
}
_INVALID_OWNERS = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: "
)


class _ReinvocationContext:
    """Which webhooks the second round calls."""

    def __init__(self) -> None:
        self.second = False
        self.changed = False  # by any webhook
        self._called: set[tuple[str, str]] = set()  # called since the last change, with reinvocationPolicy IfNeeded
        self._reinvoked: set[tuple[str, str]] = set()

    def record_call(self, match: Match, *, changed: bool) -> None:
        if changed:
            self.changed = True
            self.record_change()
        if match.webhook.reinvoke:
            self._called.add(match.webhook.key)

    def record_change(self) -> None:
        self._reinvoked |= self._called
        self._called = set()

    def skips(self, match: Match) -> bool:
        return self.second and match.webhook.key not in self._reinvoked


class MutatingDispatcher:
    def __init__(self, configurations: Lister, dependencies: WebhookDependencies, before: Sequence[Plugin]) -> None:
        self._matcher = WebhookMatcher(configurations, dependencies)
        self._post_review = dependencies.post_review
        self._metrics = dependencies.metrics
        self._before = before

    async def dispatch(self, attributes: Attributes) -> None:
        """Call the webhooks, mutating the object in place; APIError if one denies the request."""
        if not self._matcher.webhooks(attributes):
            return
        reinvocation = _ReinvocationContext()
        owners = _owners(attributes.obj)
        await self._round(attributes, reinvocation)
        if reinvocation.changed:
            after = copy.deepcopy(attributes.obj)
            for plugin in self._before:
                if plugin.applies(attributes.context.resource.group_resource, attributes.operation, plugin.mutates):
                    await plugin.reinvoke(*attributes)
            reinvocation.second = True
            if attributes.obj != after:
                reinvocation.record_change()
            await self._round(attributes, reinvocation)
            _sanitize(attributes, owners)

    async def _round(self, attributes: Attributes, reinvocation: _ReinvocationContext) -> None:
        for i, webhook in enumerate(self._matcher.webhooks(attributes)):
            match = self._matcher.match(webhook, attributes)
            if match is None or reinvocation.skips(match):
                continue
            shown = await converted_for_webhook(match, attributes)
            if not await self._matcher.holds(match, shown):
                continue
            changed = False
            note = _Note(attributes, webhook, f"round_{int(reinvocation.second)}_index_{i}")
            try:
                with counted(self._metrics, webhook, "admit", attributes):
                    patch = await call_webhook(self._post_review, match, shown, mutating=True)
                    changed = await self._patched(match, attributes, shown.obj, patch)
                note.patch(patch)
            except WebhookCallFailed as failure:
                if not webhook.has_failure_policy_ignore:
                    raise failure.refusal from None
                note.failed_open()
                _logger.warning("webhook call failed, ignored by failurePolicy error=%s", failure)
            except WebhookDenied as denial:
                raise denial.refusal from None
            finally:
                note.called(changed=changed)
            reinvocation.record_call(match, changed=changed)

    async def _patched(self, match: Match, attributes: Attributes, shown: Json | None, patch: WebhookPatch) -> bool:
        """Patch the object in place; return whether it changed."""
        operations = _operations(match, patch)
        if not operations:
            return False
        if shown is None or attributes.obj is None:
            about = f"admission webhook {quote(match.webhook.name)} attempted to modify the object"
            raise InternalError.of(f"{about}, which is not supported for this operation")
        if patch.patch_type != "JSONPatch":
            code = max(Status.from_dict(patch.status or {}).code, 400)
            raise WebhookCallFailed(match.webhook, f"unsupported patch type {quote(patch.patch_type)}", code)
        try:
            new = _read(match, shown, json_patch(shown, operations))
        except (PatchError, TypeMismatch, BadValue) as error:
            raise InternalError.of(error) from None
        changed = new != shown
        if match.kind != attributes.kind:
            new = await converted(new, match.resource, attributes.context.resource)
        attributes.obj.clear()
        attributes.obj.update(new)
        return changed


class _Note:
    """Audit annotations of one webhook call."""

    def __init__(self, attributes: Attributes, webhook: Webhook, call: str) -> None:
        self._request = attributes.context.request
        self._webhook = webhook
        self._call = call

    def called(self, *, changed: bool) -> None:
        if self._request.audit is not None:
            configuration, name = self._webhook.key
            annotation = {"configuration": configuration, "webhook": name, "mutated": changed}
            self._request.annotate(f"mutation.webhook.admission.k8s.io/{self._call}", _json(annotation))

    def patch(self, patch: WebhookPatch) -> None:
        """Annotate the patch, at level Request and above, unless the resource is sensitive."""
        audit = self._request.audit
        if audit is None or not audit.wants_request or audit.sensitive or not patch.patch:
            return
        configuration, name = self._webhook.key
        annotation = {"configuration": configuration, "webhook": name, "patch": msgspec.Raw(patch.patch)}
        value = _json({**annotation, "patchType": "JSONPatch"})
        self._request.annotate(f"patch.webhook.admission.k8s.io/{self._call}", value)

    def failed_open(self) -> None:
        self._request.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{self._call}", self._webhook.name)


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _operations(match: Match, patch: WebhookPatch) -> list[Json]:
    if not patch.patch:
        return []
    try:
        operations: Any = decode_json(patch.patch)
    except DecodeError as error:
        raise WebhookCallFailed(
            match.webhook, f"received undecodable patch in webhook response: {error}", 503
        ) from None
    if operations is not None and not isinstance(operations, list):
        why = f"json: cannot unmarshal {json_type(operations)} into Go value of type jsonpatch.Patch"
        raise WebhookCallFailed(match.webhook, f"received undecodable patch in webhook response: {why}", 503)
    return operations or []


def _read(match: Match, shown: Json, patched: Any) -> Json:
    """Decode and default the patched object; it shares nothing with the patch."""
    if not isinstance(patched, dict):
        raise InternalError.of(
            f"json: cannot unmarshal {json_type(patched)} into Go value of type map[string]interface {{}}"
        )
    patched = msgspec.json.decode(msgspec.json.encode(patched))
    kind, api_version = patched.get("kind"), patched.get("apiVersion")
    if match.resource.custom and match.kind == match.resource.gvk:
        _check_custom_kind(match, patched)
    elif (kind, api_version) != (shown.get("kind"), shown.get("apiVersion")):
        raise InternalError.of(not_registered(str(kind or ""), str(api_version or ""), _SCHEME))
    if match.kind != match.resource.gvk and builtin_schemas().of(match.kind) is None:
        return {"kind": kind, "apiVersion": api_version, **_connect_options(match, patched)}
    if match.kind != match.resource.gvk:
        obj, _ = builtin.read(builtin.model_of(match.kind), patched)
        return {"kind": kind, "apiVersion": api_version, **obj}
    obj, _ = body.typed(match.resource, patched)
    match.resource.strategy.default(obj)
    return obj


def _connect_options(match: Match, patched: Json) -> Json:
    """Validate CONNECT options, which have no schema; InternalError for a wrong type."""
    for name, (item, go_type) in _OPTIONS.items():
        value = patched.get(name)
        many = go_type.startswith("[]")
        values = value if many and isinstance(value, list) else [value]
        wrong = [each for each in values if each is not None and (type(each) is not item or (many and each is value))]
        if wrong:
            where = f"Go struct field {match.kind.kind}.{name} of type {go_type}"
            raise InternalError.of(f"json: cannot unmarshal {json_type(wrong[0])} into {where}")
    return {name: patched[name] for name in _OPTIONS if patched.get(name)}


def _check_custom_kind(match: Match, patched: Json) -> None:
    """Invalid if the kind changed; the apiVersion is ignored."""
    kind, expected = patched.get("kind") or "", match.kind
    if kind != expected.kind:
        fault = FieldError.invalid(Path("kind"), kind, f"must be {expected.kind}")
        metadata = patched.get("metadata")
        name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
        raise Invalid.of(GroupKind(expected.group, str(kind)), name, [fault])


def _owners(obj: Json | None) -> Any:
    return ((obj or {}).get("metadata") or {}).get("managedFields")


def _sanitize(attributes: Attributes, owners: Any) -> None:
    """Restore managedFields that cannot be decoded, and the request's namespace."""
    obj, context = attributes.obj, attributes.context
    if obj is None or "metadata" not in obj:
        return
    metadata = obj["metadata"]
    try:
        decode(metadata.get("managedFields"))
    except ManagedFieldsError as error:
        context.request.warnings.append(f"{_INVALID_OWNERS}{error}")
        metadata["managedFields"] = owners
    if not metadata.get("managedFields"):
        metadata.pop("managedFields", None)
    write.set_namespace(context, obj)
