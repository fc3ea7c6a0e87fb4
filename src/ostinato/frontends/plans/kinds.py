"""A package as a kind of its own: `kubectl get kafka`, with a schema of its parameters and roles of its own.

    PlanController(package_kind(Path("kafka"), kind="Kafka", group="example.dev"))

- `spec` has the parameters with their types; `status` is that of an Instance. Defaults are not written into objects, so
  that a new version of the package can change them.
- The version of an object is that of the package which the controller was started with: a newer one upgrades.
- Objects of completed plans are repaired when somebody changes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo, plural_of
from ostinato.api.validation import names
from ostinato.api.wire.json import DecodeError
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.crd import crd_of
from ostinato.crd.rbac import Access
from ostinato.frontends.plans.api import Instance, OperatorVersionSpec, Parameter
from ostinato.frontends.plans.decisions.deciding import Version
from ostinato.frontends.plans.package.files import read_package
from ostinato.frontends.plans.package.resources import package_of
from ostinato.frontends.plans.parameters import load_yaml, stored
from ostinato.frontends.plans.subjects import EVERYTHING, Subject
from ostinato.kinds.builtin import builtin_scheme

Json = dict[str, Any]

_TYPES: Final[dict[str, Json]] = {
    "": {"type": "string"},
    "string": {"type": "string"},
    "integer": {"type": "integer", "format": "int64"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "array": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
    "map": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_HEAD: Final = re.compile(r"^(apiVersion|kind): *[\"']?([^\"'\s{}]+)[\"']?\s*$", re.MULTILINE)
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")


def package_kind(package: Path, *, kind: str, group: str, version: str = "v1") -> PackageKind:
    """Return a package as a kind of its own. Raises PackageError, and ValueError for names that are not valid."""
    return PackageKind(package_of(read_package(package)).version.spec, kind=kind, group=group, version=version)


class PackageKind(Subject):
    """Objects of a kind whose spec are the parameters of a package."""

    repairs_drift = True

    def __init__(self, spec: OperatorVersionSpec, *, kind: str, group: str, version: str = "v1") -> None:
        if not _KIND.fullmatch(kind):
            raise ValueError(f"{kind!r} is not the name of a kind; write it as Kafka")
        if problems := names.name_is_dns_subdomain(group):
            raise ValueError(f"{group!r} is not an API group: {problems[0]}")
        gvk = GroupVersionKind(group, version, kind)
        self.info = KindInfo(gvk=gvk, plural=plural_of(kind), singular=kind.lower(), namespaced=True)
        self.view = Unstructured(gvk, self.info)
        self.kinds = (self.view,)
        self.definitions = (definition(self.info, spec.parameters),)
        self.access = access_of_templates(spec.templates.values())
        self._parameters = {each.name: each for each in spec.parameters}
        name = "-".join(filter(None, (spec.operator.name, spec.app_version, spec.version)))
        self._version = Version(name, "", spec)

    def reference(self, instance: Json) -> tuple[str, str]:  # noqa: ARG002 - one version for all
        return self._version.name, ""

    async def version(self, name: str, namespace: str, client: CachedClient) -> Version | None:  # noqa: ARG002
        return self._version if name == self._version.name else None

    def parameters(self, instance: Json) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in (instance.get("spec") or {}).items():
            kind = self._parameters[name].type if name in self._parameters else ""
            text = stored(value, kind)
            if text is not None:
                found[name] = text
        return found


def definition(info: KindInfo, parameters: Iterable[Parameter]) -> Json:
    """Return the CustomResourceDefinition of a kind whose spec are parameters."""
    found = crd_of(Instance)
    found["metadata"]["name"] = f"{info.plural}.{info.gvk.group}"
    spec = found["spec"]
    spec["group"] = info.gvk.group
    spec["names"] = {
        "kind": info.gvk.kind,
        "listKind": info.list_kind or f"{info.gvk.kind}List",
        "plural": info.plural,
        "singular": info.singular,
    }
    version = spec["versions"][0]
    version["name"] = info.gvk.version
    columns = version["additionalPrinterColumns"]
    version["additionalPrinterColumns"] = [each for each in columns if each["name"] != "Operator-Version"]
    schema = version["schema"]["openAPIV3Schema"]
    schema["description"] = f"{info.gvk.kind}: an operator made of plans."
    schema["properties"]["spec"] = spec_schema(parameters)
    return found


def spec_schema(parameters: Iterable[Parameter]) -> Json:
    """Return the schema of parameters: types, allowed values, immutability."""
    properties: Json = {}
    required = []
    for each in parameters:
        properties[each.name] = _property(each)
        if each.is_required and each.default is None:
            required.append(each.name)
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _property(parameter: Parameter) -> Json:
    schema: Json = dict(_TYPES.get(parameter.type, _TYPES[""]))
    said = [parameter.description or parameter.display_name]
    if parameter.default is not None:
        said.append(f"Defaults to {parameter.default.strip()!r}.")
    if parameter.trigger:
        said.append(f"A change runs the plan {parameter.trigger}.")
    if text := " ".join(filter(None, said)):
        schema["description"] = text
    if parameter.enum is not None:
        schema["enum"] = [_typed(value, parameter.type) for value in parameter.enum]
    if parameter.is_immutable:
        rule = {"rule": "self == oldSelf", "message": f"{parameter.name} is immutable"}
        schema["x-kubernetes-validations"] = [rule]
    return schema


def _typed(value: str, kind: str) -> Any:
    if kind in ("", "string"):
        return value
    try:
        return load_yaml(value)
    except DecodeError:
        return value


def access_of_templates(templates: Iterable[str]) -> tuple[Access, ...]:
    """Return the access that the objects of templates need; to everything if a template does not name its kinds."""
    resources: dict[str, set[str]] = {}
    for text in templates:
        for document in text.split("\n---"):
            heads: Mapping[str, str] = dict(_HEAD.findall(document))
            if not document.strip() or ("apiVersion" not in heads and ":" not in document):
                continue
            if set(heads) != {"apiVersion", "kind"}:
                return (EVERYTHING,)
            gvk = GroupVersionKind.of(heads["apiVersion"], heads["kind"])
            resources.setdefault(gvk.group, set()).add(_plural(gvk))
    resources.setdefault("", set()).update(("configmaps", "secrets"))  # what Pod templates use is hashed
    return tuple(
        Access(verbs=_VERBS, groups=(group,), resources=tuple(sorted(found)))
        for group, found in sorted(resources.items())
    )


def _plural(gvk: GroupVersionKind) -> str:
    scheme = builtin_scheme()
    return scheme.info(gvk).plural if scheme.recognizes(gvk) else plural_of(gvk.kind)
