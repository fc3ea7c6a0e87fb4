"""CustomResourceDefinitions in the version in which kube-apiserver stores them: apiextensions.k8s.io/v1beta1.

What all versions have in common is there a field of the spec. It is read as v1; v1 is written, which kube-apiserver
reads as well.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

VERSION: Final = "apiextensions.k8s.io/v1beta1"

# Fields of the spec, and those of each version that they stand for.
_COMMON: Final = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def from_v1beta1(obj: Json) -> Json:
    """The definition in v1."""
    spec = dict(obj.get("spec") or {})
    common = {field: spec.pop(name) for name, field in _COMMON.items() if spec.get(name)}
    first = spec.pop("version", "")
    versions = spec.get("versions") or [{"name": first, "served": True, "storage": True}]
    spec["versions"] = [_version({**each, **{f: common[f] for f in common if f not in each}}) for each in versions]
    if not spec.get("preserveUnknownFields", True):
        del spec["preserveUnknownFields"]
    else:
        spec["preserveUnknownFields"] = True  # the default of that version
    spec["conversion"] = _conversion(spec.get("conversion") or {"strategy": "None"})
    order = ("group", "names", "scope", "versions", "conversion", "preserveUnknownFields")
    return {**obj, "spec": {field: spec[field] for field in order if field in spec}}


def _version(version: Json) -> Json:
    columns = version.get("additionalPrinterColumns")
    if columns:
        version["additionalPrinterColumns"] = [_column(column) for column in columns]
    return version


def _column(column: Json) -> Json:
    return {"jsonPath" if name == "JSONPath" else name: value for name, value in column.items()}


def _conversion(conversion: Json) -> Json:
    if conversion.get("strategy") != "Webhook":
        return {"strategy": conversion.get("strategy", "None")}
    webhook = {"conversionReviewVersions": conversion.get("conversionReviewVersions") or ["v1beta1"]}
    if conversion.get("webhookClientConfig"):
        webhook = {"clientConfig": conversion["webhookClientConfig"], **webhook}
    return {"strategy": "Webhook", "webhook": webhook}
