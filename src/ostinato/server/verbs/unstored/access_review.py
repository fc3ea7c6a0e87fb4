"""Access reviews: SubjectAccessReview and its variants, SelfSubjectRulesReview."""

from __future__ import annotations

from ostinato.api.errors import BadRequest, Invalid
from ostinato.api.gvk import GroupKind
from ostinato.api.text.go_format import GoStruct
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.request import User
from ostinato.server.request.context import Context
from ostinato.server.resources.strategy import Json
from ostinato.server.verbs.unstored.access_selectors import field_terms, ignored, label_requirements, selector_errors

_SPEC = Path("spec")
_KIND = GroupKind("authorization.k8s.io", "")  # errors have no kind


class AccessReviews:
    """Handlers of the access reviews: take the review that the client sent, return its status."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def self_subject_access(self, context: Context, review: Json) -> Json:
        _refuse(_metadata_errors(review, "must be empty", ()), _attributes_errors(review["spec"]))
        assert context.request.user is not None
        return await self._status(context.request.user, review["spec"])

    async def subject_access(self, context: Context, review: Json) -> Json:
        spec = review["spec"]
        _refuse(_metadata_errors(review, "must be empty", ()), _attributes_errors(spec, of_subject=True))
        return await self._status(_subject(spec), spec)

    async def local_subject_access(self, context: Context, review: Json) -> Json:
        spec, namespace = review["spec"], context.route.namespace
        errors = _attributes_errors(spec, of_subject=True)
        attributes = spec.get("resourceAttributes")
        if attributes is not None and attributes.get("namespace", "") != namespace:
            path = Path("spec.resourceAttributes.namespace")
            errors.append(FieldError.invalid(path, attributes.get("namespace", ""), "must match metadata.namespace"))
        if spec.get("nonResourceAttributes") is not None:
            detail = "disallowed on this kind of request"
            errors.append(FieldError.invalid(Path("spec.nonResourceAttributes"), _path(spec), detail))
        _refuse(_metadata_errors(review, "must be empty except for namespace", ("namespace",)), errors)
        return await self._status(_subject(spec), spec)

    async def self_subject_rules(self, context: Context, review: Json) -> Json:
        namespace = review["spec"].get("namespace")
        if not namespace:
            raise BadRequest.of("no namespace on request")
        review["metadata"], review["spec"] = {}, {}
        assert context.request.user is not None
        rules_for = self._authorizer.rules_for(context.request.user, namespace)
        status: Json = {
            "resourceRules": [rule.raw for rule in rules_for.rules if "resources" in rule.raw],
            "nonResourceRules": [rule.raw for rule in rules_for.rules if "nonResourceURLs" in rule.raw],
            "incomplete": rules_for.incomplete,
        }
        return {**status, "evaluationError": rules_for.error} if rules_for.error else status

    async def _status(self, user: User, spec: Json) -> Json:
        attributes = spec.get("resourceAttributes")
        decision = await self._authorizer.decide(user, _asked(spec))
        errors = [each for each in (decision.error, ignored(attributes)) if each]
        status: Json = {"allowed": decision.allowed}
        if decision.denied:
            status["denied"] = True
        if decision.reason:
            status["reason"] = decision.reason
        return {**status, "evaluationError": "; ".join(errors)} if errors else status


def _subject(spec: Json) -> User:
    """The subject of a review. Its groups are those in the review; no others are added."""
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def _asked(spec: Json) -> RequestAttributes:
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        other = spec["nonResourceAttributes"]
        return RequestAttributes(other.get("verb", ""), path=other.get("path", ""))
    parts = ("verb", "group", "resource", "subresource", "namespace", "name")
    asked = RequestAttributes(*(attributes.get(part, "") for part in parts))
    return asked._replace(
        version=attributes.get("version") or "*",
        field_selector=field_terms(attributes.get("fieldSelector")),
        label_selector=label_requirements(attributes.get("labelSelector")),
    )


def _refuse(about_metadata: list[FieldError], about_spec: list[FieldError]) -> None:
    errors = about_spec + about_metadata
    if errors:
        raise Invalid.of(_KIND, "", errors)


def _metadata_errors(review: Json, detail: str, allowed: tuple[str, ...]) -> list[FieldError]:
    metadata = review["metadata"]
    if all(key in (*allowed, "managedFields") for key in metadata):
        return []
    managed = [GoStruct(**entry) for entry in metadata.get("managedFields", ())]
    shown = GoStruct(**metadata | ({"managedFields": managed} if managed else {}))
    return [FieldError.invalid(Path("metadata"), shown, detail)]


def _attributes_errors(spec: Json, *, of_subject: bool = False) -> list[FieldError]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: list[FieldError] = []
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        errors.append(FieldError.invalid(_SPEC.child("nonResourceAttributes"), _path(spec), detail))
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(FieldError.invalid(_SPEC.child("resourceAttributes"), None, detail))
    if of_subject and not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        errors.append(FieldError.invalid(_SPEC.child("user"), "", detail))
    return errors + selector_errors(resource)


def _path(spec: Json) -> GoStruct:
    attributes = spec["nonResourceAttributes"]
    return GoStruct(Path=attributes.get("path", ""), Verb=attributes.get("verb", ""))
