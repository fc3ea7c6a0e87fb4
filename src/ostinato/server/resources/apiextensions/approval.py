"""API approval: definitions in groups of *.k8s.io and *.kubernetes.io carry an annotation with their API review."""

from __future__ import annotations

from urllib.parse import urlsplit

from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.apiextensions.conditions import condition
from ostinato.server.resources.strategy import Json

ANNOTATION = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


def is_protected(group: str) -> bool:
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def _state(definition: Json) -> tuple[str, str]:
    """The state of the annotation, as reason and message of the condition."""
    text = definition["metadata"].get("annotations", {}).get(ANNOTATION, "")
    if not text:
        return "MissingAnnotation", f"protected groups must have approval annotation {quote(ANNOTATION)}, {_SEE}"
    if text.startswith("unapproved"):
        return "UnapprovedAnnotation", f"not approved: {quote(text)}"
    try:
        url = urlsplit(text)
    except ValueError:
        url = urlsplit("")
    if url.scheme and url.netloc:
        return "ApprovedAnnotation", f"approved in {text}"
    why = (
        f"protected groups must have approval annotation {quote(ANNOTATION)} with either a URL or a reason starting "
        f'with "unapproved", {_SEE}'
    )
    return "InvalidAnnotation", why


def approval_faults(new: Json, old: Json | None) -> list[FieldError]:
    """Validate the annotation; an error that the old object had is ignored."""
    if not is_protected(new["spec"].get("group", "")):
        return []
    state, why = _state(new)
    if old is not None and _state(old)[0] == state:
        return []
    path = Path("metadata", "annotations").key(ANNOTATION)
    if state == "MissingAnnotation":
        return [FieldError.required(path, why)]
    if state == "InvalidAnnotation":
        return [FieldError.invalid(path, new["metadata"]["annotations"][ANNOTATION], why)]
    return []


def approval_condition(definition: Json) -> Json | None:
    """The KubernetesAPIApprovalPolicyConformant condition; None for groups that are not protected."""
    if not is_protected(definition["spec"]["group"]):
        return None
    state, why = _state(definition)
    approved = "True" if state == "ApprovedAnnotation" else "False"
    return condition("KubernetesAPIApprovalPolicyConformant", approved, state, why)
