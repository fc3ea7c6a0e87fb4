"""Checks that need nothing but the package: its definitions, samples, bundle, Deployment and roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ostinato.api.gvk import GroupVersionKind
from ostinato.crd.rbac import Access
from ostinato.packaging.error import PackageError
from ostinato.packaging.formats.install import concrete_manifests
from ostinato.packaging.formats.olm import check_bundle, olm_bundle
from ostinato.packaging.formats.olm.descriptors import descriptors
from ostinato.packaging.objects.access import all_rules
from ostinato.packaging.package import Package
from ostinato.packaging.scorecard.result import Result

Json = dict[str, Any]


class Suggestion(str):
    """A finding that does not fail the check."""

    __slots__ = ()


Check = Callable[[Package], Iterator[str]]  # yields errors and Suggestions


class Named(NamedTuple):
    suite: str
    name: str
    check: Check


class Served(NamedTuple):
    """A served version of a definition."""

    definition: str
    kind: GroupVersionKind
    version: Json

    @property
    def schema(self) -> Json:
        found: Json = self.version["schema"]["openAPIV3Schema"]
        return found

    def fields(self, part: str) -> Json:
        found: Json = self.schema.get("properties", {}).get(part, {}).get("properties", {})
        return found


def static_results(package: Package) -> list[Result]:
    """Run the checks, in a fixed order."""
    results = []
    for suite, name, check in CHECKS:
        found = list(check(package))
        errors = tuple(each for each in found if not isinstance(each, Suggestion))
        suggestions = tuple(str(each) for each in found if isinstance(each, Suggestion))
        results.append(Result(suite=suite, name=name, errors=errors, suggestions=suggestions))
    return results


def served(package: Package) -> list[Served]:
    return [
        Served(
            each["metadata"]["name"],
            GroupVersionKind(each["spec"]["group"], version["name"], each["spec"]["names"]["kind"]),
            version,
        )
        for each in package.operator.definitions
        for version in each["spec"]["versions"]
        if version["served"]
    ]


def samples_of(package: Package, kind: GroupVersionKind) -> list[Json]:
    return [each for each in package.samples if (each["apiVersion"], each["kind"]) == (kind.api_version, kind.kind)]


def _samples_exist(package: Package) -> Iterator[str]:
    for each in served(package):
        if not samples_of(package, each.kind):
            yield f"{each.kind.api_version} {each.kind.kind}: no sample; add one to the directory of samples"


def _spec(package: Package) -> Iterator[str]:
    for each in served(package):
        for sample in samples_of(package, each.kind):
            if "spec" not in sample and "spec" in each.schema.get("properties", {}):
                yield f"{each.kind.kind} {sample['metadata'].get('name', '')}: no spec; add the block to the sample"


def _status(package: Package) -> Iterator[str]:
    for each in served(package):
        if "status" not in each.version.get("subresources", {}):
            yield f"{each.definition} {each.kind.version}: no status; add `status: STATUS | None = None` to the class"
        elif "conditions" not in each.fields("status"):
            yield Suggestion(f"{each.definition} {each.kind.version}: status has no conditions; tools wait for them")


def _bundle(package: Package) -> Iterator[str]:
    try:
        yield from check_bundle(olm_bundle(package))
    except PackageError as error:
        yield str(error)


def _validation(package: Package) -> Iterator[str]:
    for each in served(package):
        if not each.schema.get("properties", {}).get("spec", {}).get("type"):
            yield f"{each.definition} {each.kind.version}: spec has no schema; give the field a type"
        for sample in samples_of(package, each.kind):
            name = sample["metadata"].get("name", "")
            for part in ("spec", "status"):
                known, given = each.fields(part), sample.get(part)
                for field in given if known and isinstance(given, dict) else ():
                    if field not in known:
                        yield f"{each.kind.kind} {name}: {part}.{field}: not in the schema"


def _resources(package: Package) -> Iterator[str]:
    for each in package.operator.definitions:
        name = each["metadata"]["name"]
        if not package.operator.owned.get(name):
            yield Suggestion(f"{name}: its controllers own no kind; name those that they create with owns=[...]")


def _descriptors(part: str) -> Check:
    def check(package: Package) -> Iterator[str]:
        for each in served(package):
            known = {entry["path"] for entry in descriptors(each.schema, part)}
            for sample in samples_of(package, each.kind):
                given = sample.get(part)
                for field in given if isinstance(given, dict) else ():
                    if field not in known:
                        yield f"{each.definition} {each.kind.version}: {part}.{field}: no descriptor; declare the field"
            for field, schema in sorted(each.fields(part).items()):
                if not schema.get("description"):
                    yield Suggestion(f"{each.definition} {each.kind.version}: {part}.{field}: no docstring to show")

    return check


def _container(package: Package) -> Json:
    (deployment,) = [each.object for each in concrete_manifests(package) if each.object["kind"] == "Deployment"]
    found: Json = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def _probes(package: Package) -> Iterator[str]:
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe not in _container(package):
            yield f"Deployment {package.name}: no {probe}"


def _amounts(package: Package) -> Iterator[str]:
    resources = package.overrides.resources
    for resource in ("cpu", "memory"):
        if resource not in resources.requests:
            yield f"resources.requests.{resource}: not set; a quota may reject the Pod"
    if "memory" not in resources.limits:
        yield "resources.limits.memory: not set; a leak would affect the node"


def _image(package: Package) -> Iterator[str]:
    image = package.image
    if not image.digest and image.tag in ("", "latest"):
        yield f"image {image}: not a fixed version; use a tag or a digest"
    if "." not in image.repository.partition("/")[0] and ":" not in image.repository.partition("/")[0]:
        yield Suggestion(f"image {image}: no registry; nodes would look for it at their default one")


def _wildcards(package: Package) -> Iterator[str]:
    for rule in all_rules(package):
        for field, values in (("verbs", rule.verbs), ("groups", rule.groups), ("resources", rule.resources)):
            if any("*" in value for value in values):
                yield f"access to {_described(rule)}: {field} {', '.join(values)}; name those that the program uses"


def _secrets(package: Package) -> Iterator[str]:
    for rule in all_rules(package):
        if "secrets" in rule.resources and not rule.namespace and not rule.names:
            yield Suggestion(
                f"access to all Secrets of the cluster ({', '.join(rule.verbs)}); limit namespaces or names"
            )


def _described(rule: Access) -> str:
    return ", ".join(rule.resources or rule.urls)


CHECKS: Final = (
    Named("basic", "basic-check-samples", _samples_exist),
    Named("basic", "basic-check-spec", _spec),
    Named("basic", "basic-check-status", _status),
    Named("olm", "olm-bundle-validation", _bundle),
    Named("olm", "olm-crds-have-validation", _validation),
    Named("olm", "olm-crds-have-resources", _resources),
    Named("olm", "olm-spec-descriptors", _descriptors("spec")),
    Named("olm", "olm-status-descriptors", _descriptors("status")),
    Named("deployment", "deployment-probes", _probes),
    Named("deployment", "deployment-resources", _amounts),
    Named("deployment", "deployment-image", _image),
    Named("deployment", "rbac-no-wildcards", _wildcards),
    Named("deployment", "rbac-secrets", _secrets),
)

SUITES: Final = ("basic", "olm", "deployment", "cluster")
