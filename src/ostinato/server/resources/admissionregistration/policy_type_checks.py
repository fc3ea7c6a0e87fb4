"""Type checking of a policy's expressions against the schemas of the kinds that it matches.

A policy is accepted whatever fields its expressions use, since `object` is dynamic. Type errors for a matched kind are
reported as warnings in the policy's status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import builtin_schemas
from ostinato.cel.check.declarations import declared
from ostinato.cel.types import DYN, Type
from ostinato.server.resources.admissionregistration.policy_expressions import Compiler
from ostinato.server.resources.strategy import Json

_REFERENCE: Final = "#/definitions/"
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# CEL types of definitions that are not objects.
_SPECIAL: Final[Mapping[str, Json]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {},  # a string or a number: untyped
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": {},
}


class CheckedKind(NamedTuple):
    """A kind that a policy matches, with its schema."""

    kind: GroupVersionKind
    schema: Mapping[str, Any]


def type_warnings(spec: Json, kinds: Iterable[CheckedKind], parameter: CheckedKind | None) -> list[dict[str, str]]:
    """The warnings about a policy: field reference of the expression, and message."""
    compilers = [(each.kind, _compiler(spec, each, parameter)) for each in kinds]
    found = []
    for i, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            text = validation.get(field)
            messages = [
                f"{kind.api_version if kind.group else f'/{kind.version}'}, Kind={kind.kind}: {issues}\n"
                for kind, compiler in compilers
                if text and (issues := compiler.issues(text))
            ]
            if messages:
                found.append({"fieldRef": f"spec.validations[{i}].{field}", "warning": "\n".join(messages)})
    return found


def _compiler(spec: Json, kind: CheckedKind, parameter: CheckedKind | None) -> Compiler:
    of_object = _type(kind)
    types = {"object": of_object, "oldObject": of_object}
    if parameter is not None:
        types["params"] = _type(parameter)
    compiler = Compiler(spec, types)
    compiler.add_variables(spec)
    return compiler


def _type(of: CheckedKind) -> Type:
    found = declared(of.schema, name=of.kind.kind)
    return DYN if found is None else found.type


def builtin_schema(kind: GroupVersionKind) -> Mapping[str, Any] | None:
    """The schema of a built-in kind with all references resolved; None if there is no such kind."""
    name = builtin_schemas().name(kind)
    return None if name is None else _whole(name)


def custom_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a version of a custom resource, with TypeMeta and ObjectMeta."""
    text = {"type": "string"}
    own = {"apiVersion": text, "kind": text, "metadata": _whole(_METADATA)}
    return {**schema, "type": "object", "properties": {**(schema.get("properties") or {}), **own}}


@lru_cache(maxsize=32)
def _whole(name: str) -> Mapping[str, Any]:
    whole: Mapping[str, Any] = _resolved({"$ref": _REFERENCE + name}, ())
    return whole


def _resolved(raw: Any, within: tuple[str, ...]) -> Any:
    """Resolve the references in a schema; recursive references are left untyped."""
    if isinstance(raw, list):
        return [_resolved(item, within) for item in raw]
    if not isinstance(raw, Mapping):
        return raw
    reference = raw.get("$ref")
    if not isinstance(reference, str):
        return {name: _resolved(value, within) for name, value in raw.items()}
    name = reference.removeprefix(_REFERENCE)
    if name in _SPECIAL or name in within:
        return _SPECIAL.get(name, {})
    return _resolved(builtin_schemas().definitions[name], (*within, name))
