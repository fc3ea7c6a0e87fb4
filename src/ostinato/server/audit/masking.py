"""Masking: Secret data and tokens are never written, whatever the policy says.

Values are replaced by `[masked]`; names of keys stay. That covers objects, lists, tables and patches of Secrets, the
copy of a Secret that kubectl keeps in an annotation, the tokens of TokenReviews and TokenRequests, and error messages
that could quote what was sent. kube-apiserver writes them at levels Request and RequestResponse.
"""

from __future__ import annotations

from typing import Any, Final

MASK: Final = "[masked]"

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MAPS: Final = frozenset({"data", "stringData"})
_QUOTING: Final = frozenset({"", "BadRequest", "Invalid", "InternalError", "UnsupportedMediaType"})
_SENSITIVE: Final = frozenset(
    {
        ("", "secrets", ""),
        ("", "serviceaccounts", "token"),
        ("authentication.k8s.io", "tokenreviews", ""),
    }
)


def is_sensitive(group: str, resource: str, subresource: str) -> bool:
    """Whether the bodies of a resource are masked; includes all subresources of Secrets."""
    return (group, resource, subresource) in _SENSITIVE or (group, resource) == ("", "secrets")


def masked(value: Any) -> Any:
    """Mask a decoded body: an object, a list, a Table or a patch of any type."""
    if isinstance(value, list):
        return [_masked_operation(each) if _is_operation(each) else masked(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _masked_field(key, each) for key, each in value.items()}


def _masked_field(key: str, value: Any) -> Any:
    if key in _MAPS:
        return dict.fromkeys(value, MASK) if isinstance(value, dict) else (None if value is None else MASK)
    if key in ("token", _LAST_APPLIED):
        return None if value is None else MASK
    return masked(value)


def _is_operation(value: Any) -> bool:
    """Whether a value is a JSON patch operation."""
    return isinstance(value, dict) and isinstance(value.get("op"), str) and "path" in value


def _masked_operation(operation: dict[str, Any]) -> dict[str, Any]:
    return {key: MASK if key == "value" else value for key, value in operation.items()}


def masked_status(status: dict[str, Any]) -> dict[str, Any]:
    """Mask the parts of a Status that could quote the request."""
    if status.get("status") != "Failure" or status.get("reason", "") not in _QUOTING:
        return status
    return {**{key: value for key, value in status.items() if key != "details"}, "message": MASK}
