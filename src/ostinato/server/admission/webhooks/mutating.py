"""Mutating webhooks: asked one after another, each sees what those before it have made of the object.

When one has changed something, the plugins before and the webhooks that ask for it are asked once more: those that had
their turn before the last change.
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
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.wire import DecodeError, decode_json
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.policies.matching import Attributes
from ostinato.server.admission.webhooks.matching import Match, Webhook, WebhookMatcher
from ostinato.server.admission.webhooks.review import FailedCall, Verdict, asked
from ostinato.server.admission.webhooks.versions import converted, shown_as
from ostinato.server.request import body
from ostinato.server.resources.strategy import Json
from ostinato.server.schema import builtin
from ostinato.server.schema.builtin import BadValue, TypeMismatch, json_type
from ostinato.server.schema.decoding import not_registered
from ostinato.server.verbs import write

if TYPE_CHECKING:
    from ostinato.server.admission.webhooks.plugins import Parts
    from ostinato.server.resources.lister import Lister

_logger = logging.getLogger(__name__)
_SCHEME = "pkg/runtime/scheme.go:111"
_OPTIONS: Final = {  # of connections: the type of a value, or of each, and what Go calls it
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


class _Rounds:
    """Who is to be asked in the second round."""

    def __init__(self) -> None:
        self.second = False
        self.changed = False  # by a webhook, ever
        self._asked: set[tuple[str, str]] = set()  # since the last change, and willing to be asked again
        self._again: set[tuple[str, str]] = set()

    def note_asked(self, match: Match, *, changed: bool) -> None:
        if changed:
            self.changed = True
            self.note_change()
        if match.webhook.again:
            self._asked.add(match.webhook.key)

    def note_change(self) -> None:
        self._again |= self._asked
        self._asked = set()

    def skips(self, match: Match) -> bool:
        return self.second and match.webhook.key not in self._again


class MutatingWebhooks:
    def __init__(self, configurations: Lister, parts: Parts, before: Sequence[Plugin]) -> None:
        self._matcher = WebhookMatcher(configurations, parts)
        self._ask = parts.ask
        self._before = before

    async def ask(self, attributes: Attributes) -> None:
        """Let webhooks change the object of a write in place; an APIError if one refuses it."""
        if not self._matcher.webhooks(attributes):
            return
        rounds = _Rounds()
        owners = _owners(attributes.obj)
        await self._round(attributes, rounds)
        if rounds.changed:
            after = copy.deepcopy(attributes.obj)
            for plugin in self._before:
                await plugin.mutate_again(*attributes)
            rounds.second = True
            if attributes.obj != after:
                rounds.note_change()
            await self._round(attributes, rounds)
            _settle(attributes, owners)

    async def _round(self, attributes: Attributes, rounds: _Rounds) -> None:
        for i, webhook in enumerate(self._matcher.webhooks(attributes)):
            match = self._matcher.match(webhook, attributes)
            if match is None or rounds.skips(match):
                continue
            shown = await shown_as(match, attributes)
            if not await self._matcher.holds(match, shown):
                continue
            changed = False
            note = _Note(attributes, webhook, f"round_{int(rounds.second)}_index_{i}")
            try:
                verdict = await asked(self._ask, match, shown, mutating=True)
                changed = await self._patched(match, attributes, shown.obj, verdict)
                note.patch(verdict)
            except FailedCall as failure:
                if not webhook.ignores_failures:
                    raise failure.refusal from None
                note.failed_open()
                _logger.warning("%s; its failure policy lets the request pass", failure)
            finally:
                note.called(changed=changed)
            rounds.note_asked(match, changed=changed)

    async def _patched(self, match: Match, attributes: Attributes, shown: Json | None, verdict: Verdict) -> bool:
        """Patch the object in place; whether that has changed it."""
        operations = _operations(match, verdict)
        if not operations:
            return False
        if shown is None or attributes.obj is None:
            about = f"admission webhook {quote(match.webhook.name)} attempted to modify the object"
            raise InternalError.of(f"{about}, which is not supported for this operation")
        if verdict.patch_type != "JSONPatch":
            raise FailedCall(match.webhook, f"unsupported patch type {quote(verdict.patch_type)}")
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
    """What the audit event says of one call of a webhook."""

    def __init__(self, attributes: Attributes, webhook: Webhook, call: str) -> None:
        self._request = attributes.context.request
        self._webhook = webhook
        self._call = call

    def called(self, *, changed: bool) -> None:
        if self._request.audit is not None:
            configuration, name = self._webhook.key
            told = {"configuration": configuration, "webhook": name, "mutated": changed}
            self._request.annotate(f"mutation.webhook.admission.k8s.io/{self._call}", _json(told))

    def patch(self, verdict: Verdict) -> None:
        """The patch, where bodies are written and it can hold no secret."""
        audit = self._request.audit
        if audit is None or not audit.wants_request or audit.sensitive or not verdict.patch:
            return
        configuration, name = self._webhook.key
        told = {"configuration": configuration, "webhook": name, "patch": msgspec.Raw(verdict.patch)}
        value = _json({**told, "patchType": "JSONPatch"})
        self._request.annotate(f"patch.webhook.admission.k8s.io/{self._call}", value)

    def failed_open(self) -> None:
        self._request.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{self._call}", self._webhook.name)


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _operations(match: Match, verdict: Verdict) -> list[Json]:
    if not verdict.patch:
        return []
    try:
        operations: Any = decode_json(verdict.patch)
    except DecodeError as error:
        raise FailedCall(match.webhook, f"received undecodable patch in webhook response: {error}") from None
    if operations is not None and not isinstance(operations, list):
        why = f"json: cannot unmarshal {json_type(operations)} into Go value of type jsonpatch.Patch"
        raise FailedCall(match.webhook, f"received undecodable patch in webhook response: {why}")
    return operations or []


def _read(match: Match, shown: Json, patched: Any) -> Json:
    """A patched object in the shape of its kind, defaulted; it shares nothing with the patch."""
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
    """What is asked of a connection, which has no schema; InternalError if something is of another type."""
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
    """Custom objects stay of their kind; what they say of their version counts for nothing."""
    kind, expected = patched.get("kind") or "", match.kind
    if kind != expected.kind:
        fault = FieldError.invalid(Path("kind"), kind, f"must be {expected.kind}")
        metadata = patched.get("metadata")
        name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
        raise Invalid.of(GroupKind(expected.group, str(kind)), name, [fault])


def _owners(obj: Json | None) -> Any:
    return ((obj or {}).get("metadata") or {}).get("managedFields")


def _settle(attributes: Attributes, owners: Any) -> None:
    """What a webhook may not leave behind: owners that nobody can read, and another namespace than the request's."""
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
    write.fit_namespace(context, obj)
