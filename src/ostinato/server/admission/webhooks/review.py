"""AdmissionReview: requests to and responses of admission webhooks."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ostinato.api.errors import APIError, BadRequest, InternalError, from_status
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.status import Status
from ostinato.api.text.go_format import quote
from ostinato.server.admission.policies.matching import Attributes
from ostinato.server.admission.webhooks.matching import Match, Webhook
from ostinato.server.request.options import DeleteOptions, WriteOptions
from ostinato.server.resources.strategy import Json
from ostinato.server.webhooks.review import check_kind, decoded, field, version_of
from ostinato.server.webhooks.target import CallError, HttpStatusError, PostReview, UnusableTarget

if TYPE_CHECKING:
    from ostinato.server.request import User

_KINDS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_RESPONSE = "AdmissionResponse.response"


class WebhookCallFailed(Exception):  # noqa: N818
    """The call failed or the response is invalid; failurePolicy decides. `code`: for the metrics."""

    def __init__(self, webhook: Webhook, why: str, code: int) -> None:
        super().__init__(f"failed calling webhook {quote(webhook.name)}: {why}")
        self.code = code

    @property
    def refusal(self) -> APIError:
        return InternalError.of(self)


class WebhookDenied(Exception):  # noqa: N818
    """The webhook denied the request."""

    def __init__(self, refusal: APIError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class WebhookPatch(NamedTuple):
    patch: bytes
    patch_type: str
    status: Json | None


async def call_webhook(
    post_review: PostReview, match: Match, attributes: Attributes, *, mutating: bool
) -> WebhookPatch:
    """Call a webhook and return its patch.

    - WebhookDenied if it denies the request, WebhookCallFailed if the call fails; APIError for other errors.
    - `attributes`: with the objects converted to the webhook's version.
    """
    webhook, context = match.webhook, attributes.context
    if _is_dry(attributes) and webhook.raw.get("sideEffects") not in ("None", "NoneOnDryRun"):
        raise BadRequest.of(f"admission webhook {quote(webhook.name)} does not support dry run")
    version = version_of(webhook.raw.get("admissionReviewVersions") or [])
    if not version:
        why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise WebhookCallFailed(webhook, f"could not create admission objects: {why}", 400)
    expected = GroupVersionKind("admission.k8s.io", version, "AdmissionReview")
    uid = context.world.ids.uid()
    review = {"kind": expected.kind, "apiVersion": expected.api_version, "request": _request(uid, match, attributes)}
    try:
        data = await post_review(webhook.raw["clientConfig"], msgspec.json.encode(review), webhook.seconds)
        answer = decoded(data, expected)
        response = _Response.read(answer)
    except UnusableTarget as error:
        raise WebhookCallFailed(webhook, f"could not get REST client: {error}", 500) from None
    except CallError as error:
        code = error.status if isinstance(error, HttpStatusError) else 503
        raise WebhookCallFailed(webhook, f"failed to call webhook: {error}", code) from None
    fault = _fault(answer, response, expected, uid, mutating=mutating)
    if fault or response is None:
        raise WebhookCallFailed(webhook, f"received invalid webhook response: {fault}", 503)
    context.request.warnings.extend(response.warnings)
    for key, value in response.annotations.items():
        context.request.annotate(f"{webhook.name}/{key}", value)
    if not response.allowed:
        raise WebhookDenied(_denied(webhook.name, response.status))
    is_json_patch = version == "v1beta1" and response.patch
    return WebhookPatch(response.patch, "JSONPatch" if is_json_patch else response.patch_type or "", response.status)


# Request


def _is_dry(attributes: Attributes) -> bool:
    return bool(getattr(attributes.options, "dry_run", False))


def _request(uid: str, match: Match, attributes: Attributes) -> Json:
    own, kind = attributes.resource, attributes.kind
    request: Json = {
        "uid": uid,
        "kind": _kind(match.kind),
        "resource": _resource(match.resource.gvr),
        "subResource": attributes.subresource,
        "requestKind": _kind(kind),
        "requestResource": _resource(own),
        "requestSubResource": attributes.subresource,
        "name": "" if attributes.context.route.verb == "deletecollection" else attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": _user(attributes.context.request.user),
        "object": attributes.obj,
        "oldObject": attributes.old,
        "dryRun": _is_dry(attributes),
        "options": _options(attributes),
    }
    return {name: value for name, value in request.items() if value != ""}


def _kind(kind: GroupVersionKind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(gvr: GroupVersionResource) -> Json:
    return {"group": gvr.group, "version": gvr.version, "resource": gvr.resource}


def _user(user: User | None) -> Json:
    if user is None:
        return {}
    fields = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in fields.items() if value}


def _options(attributes: Attributes) -> Json | None:
    options = attributes.options
    kind = _KINDS.get(attributes.operation)
    if options is None or kind is None:
        return None
    fields: Json = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if isinstance(options, DeleteOptions):
        preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
        fields["gracePeriodSeconds"] = options.grace
        fields["preconditions"] = {name: value for name, value in preconditions.items() if value is not None} or None
        fields["orphanDependents"] = options.orphan_dependents
        fields["propagationPolicy"] = options.propagation
    elif isinstance(options, WriteOptions):
        fields["fieldManager"] = options.field_manager or None
        fields["fieldValidation"] = attributes.context.request.parameter("fieldValidation") or None
    fields["dryRun"] = ["All"] if options.dry_run else None
    return {name: value for name, value in fields.items() if value is not None}


# Response


class _Response(NamedTuple):
    uid: str
    allowed: bool
    status: Json | None
    patch: bytes
    patch_type: str | None
    warnings: list[str]
    annotations: dict[str, str]

    @classmethod
    def read(cls, review: Json) -> _Response | None:
        """Decode a response; None if it is absent, CallError for wrong types."""
        raw = field(review, "response", dict, "AdmissionReview")
        if raw is None:
            return None
        return cls(
            field(raw, "uid", str, _RESPONSE) or "",
            bool(field(raw, "allowed", bool, _RESPONSE)),
            field(raw, "status", dict, _RESPONSE),
            _bytes(field(raw, "patch", str, _RESPONSE) or ""),
            field(raw, "patchType", str, _RESPONSE),
            _texts(field(raw, "warnings", list, _RESPONSE) or []),
            _annotations(field(raw, "auditAnnotations", dict, _RESPONSE, "map[string]string") or {}),
        )


def _annotations(values: Json) -> dict[str, str]:
    for value in values.values():
        field({"auditAnnotations": value}, "auditAnnotations", str, _RESPONSE)
    return {key: value or "" for key, value in values.items()}


def _texts(values: list[Any]) -> list[str]:
    for value in values:
        field({"warnings": value}, "warnings", str, _RESPONSE)
    return [value or "" for value in values]


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        good = next((i for i, c in enumerate(text) if not (c.isascii() and (c.isalnum() or c in "+/"))), len(text))
        raise CallError(f"illegal base64 data at input byte {good}") from None


def _fault(review: Json, response: _Response | None, expected: GroupVersionKind, uid: str, *, mutating: bool) -> str:
    """The error in a response, "" if it is valid; v1beta1 is validated less strictly."""
    if response is None:
        return "webhook response was absent"
    if expected.version != "v1":
        return ""
    if response.uid != uid:
        return f"expected response.uid={quote(uid)}, got {quote(response.uid)}"
    fault = check_kind(review, expected)
    if fault:
        return fault
    if not mutating:
        if response.patch:
            return "validating webhook may not return response.patch"
        return "" if response.patch_type is None else "validating webhook may not return response.patchType"
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    return 'webhook returned invalid response.patchType of ""' if response.patch_type == "" else ""


def _denied(name: str, raw: Any) -> APIError:
    status = Status.from_dict(raw or {})
    about = f"admission webhook {quote(name)} denied the request"
    why = status.message or status.reason
    return from_status(
        msgspec.structs.replace(
            status,
            code=max(status.code, 400),
            status=status.status if status.status not in ("", "Success") else "Failure",
            message=f"{about}: {why}" if why else f"{about} without explanation",
        )
    )
