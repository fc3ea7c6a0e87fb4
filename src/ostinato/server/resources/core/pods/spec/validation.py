"""Validation of Pod specs, in Pods and in Pod templates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.app_armor import (
    validate_app_armor_annotations,
    validate_app_armor_matches,
)
from ostinato.server.resources.core.pods.spec.containers import (
    PodView,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
    validate_resources,
)
from ostinato.server.resources.core.pods.spec.resources import total
from ostinato.server.resources.core.pods.spec.scheduling import (
    validate_affinity,
    validate_gates,
    validate_spread_constraints,
    validate_tolerations,
)
from ostinato.server.resources.core.pods.spec.security import validate_os, validate_pod_security_context
from ostinato.server.resources.core.pods.spec.volumes import validate_volumes
from ostinato.server.resources.core.pods.spec.windows import validate_host_processes
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation import quantities as amounts
from ostinato.server.resources.validation.checks import checked, legacy_ip, one_of
from ostinato.server.resources.validation.internal_values import as_internal

_LONGEST_HOSTNAME = 64
_LONGEST_DEADLINE = (1 << 31) - 1
_NAMESERVERS, _SEARCHES, _SEARCH_CHARACTERS = 3, 32, 2048
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_MIRROR = "kubernetes.io/config.mirror"
_MOST_TEMPLATES, _MOST_BYTES = 256, 16 * 1024
_VALID_TEMPLATES: set[bytes] = set()


def validate_pod_template(template: Json, path: Path) -> list[FieldError]:
    """Validate a PodTemplateSpec. Most writes of its object do not change it: valid ones are remembered."""
    encoded = msgspec.json.encode(template)
    if encoded in _VALID_TEMPLATES:
        return []
    errors = _template_errors(template, path)
    if not errors and len(encoded) <= _MOST_BYTES:
        if len(_VALID_TEMPLATES) >= _MOST_TEMPLATES:
            _VALID_TEMPLATES.clear()
        _VALID_TEMPLATES.add(encoded)
    return errors


def _template_errors(template: Json, path: Path) -> list[FieldError]:
    metadata = template.get("metadata", {})
    errors = names.validate_labels(metadata.get("labels", {}), path.child("labels"))
    errors += names.validate_annotations(metadata.get("annotations", {}), path.child("annotations"))
    errors += validate_pod_annotations(metadata.get("annotations", {}), template["spec"], path.child("annotations"))
    errors += validate_pod_spec(template["spec"], None, path.child("spec"))
    errors += validate_app_armor_matches(metadata, template["spec"], path.child("spec"))
    if template["spec"].get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(FieldError.forbidden(path.child("spec", "ephemeralContainers"), detail))
    return errors


def validate_pod_annotations(annotations: dict[str, str], spec: Json, path: Path) -> list[FieldError]:
    """Validate the annotations that the server interprets."""
    errors: list[FieldError] = []
    if _MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(FieldError.invalid(path.key(_MIRROR), annotations[_MIRROR], detail))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        errors.append(FieldError.invalid(path.key(_DELETION_COST), cost, "must be a 32bit integer"))
    return errors + validate_app_armor_annotations(annotations, spec, path)


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    if not digits or not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return False
    return (digits == "0" or digits[0] != "0") and text != "-0" and -(1 << 31) <= int(text) < 1 << 31


def validate_pod_spec(spec: Json, pod: str | None, path: Path, *, mirror: bool = False) -> list[FieldError]:
    """Validate a PodSpec; `pod` is the name of its Pod, None in a template. `mirror`: it is a mirror Pod's."""
    volumes, errors = validate_volumes(spec.get("volumes", []), pod, path.child("volumes"))
    errors += _validate_resource_claims(spec.get("resourceClaims", ()), path.child("resourceClaims"), mirror=mirror)
    claims = frozenset(claim.get("name", "") for claim in spec.get("resourceClaims", ()))
    view = PodView(
        volumes=volumes,
        claims=claims,
        grace=spec.get("terminationGracePeriodSeconds", 0),
        restart_policy=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers", True),
    )
    containers, init = spec.get("containers") or [], spec.get("initContainers", [])
    errors += validate_containers(containers, view, path.child("containers"))
    errors += validate_init_containers(init, containers, view, path.child("initContainers"))
    ephemeral = spec.get("ephemeralContainers", [])
    if ephemeral:
        errors += validate_ephemeral_containers(ephemeral, spec, view, path.child("ephemeralContainers"))
    if "resources" in spec:
        errors += _validate_pod_resources(spec, claims, path.child("resources"))
    if spec.get("hostNetwork"):
        errors += _validate_host_network(containers, path, pod=pod is not None)
    errors += one_of(spec.get("restartPolicy", ""), ("Always", "OnFailure", "Never"), path.child("restartPolicy"))
    errors += one_of(spec.get("dnsPolicy", ""), _DNS_POLICIES, path.child("dnsPolicy"))
    errors += names.validate_labels(spec.get("nodeSelector", {}), path.child("nodeSelector"))
    errors += validate_pod_security_context(spec.get("securityContext", {}), spec, path.child("securityContext"))
    if "affinity" in spec:
        errors += validate_affinity(spec["affinity"], path.child("affinity"))
    errors += _validate_dns(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), path.child("dnsConfig"))
    for i, gate in enumerate(spec.get("readinessGates", ())):
        where = path.child("readinessGates").index(i).child("conditionType")
        errors += checked(names.is_qualified_name, gate.get("conditionType", ""), where)
    errors += validate_gates(spec.get("schedulingGates", []), path.child("schedulingGates"))
    errors += validate_spread_constraints(
        spec.get("topologySpreadConstraints", []), path.child("topologySpreadConstraints")
    )
    errors += validate_host_processes(spec, path)
    errors += _validate_host_users(spec, path)
    errors += _validate_hostname_override(spec, path.child("hostnameOverride"))
    return errors + _validate_names(spec, path) + _validate_rest(spec, path)


def _validate_resource_claims(claims: Sequence[Json], path: Path, *, mirror: bool) -> list[FieldError]:
    """Validate the resourceClaims of a Pod."""
    if mirror:
        return [FieldError.forbidden(Path("[]"), "static pods do not support resource claims") for _ in claims]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        at, name = path.index(i), claim.get("name", "")
        if not name:
            errors.append(FieldError.required(at.child("name")))
        elif name in seen:
            errors.append(FieldError.duplicate(at.child("name"), name))
        else:
            errors += checked(names.is_dns1123_label, name, at.child("name"))
        seen.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
        if len(given) != 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            if not given:
                detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(FieldError.invalid(at, as_internal("core.v1.PodResourceClaim", claim), detail))
        for field in given:
            errors += checked(names.name_is_dns_subdomain, claim[field], at.child(field))
    return errors


def _validate_pod_resources(spec: Json, claims: frozenset[str], path: Path) -> list[FieldError]:
    resources = spec["resources"]
    if spec.get("os", {}).get("name") == "windows":
        return [FieldError.forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if resources.get("claims"):
        detail = "claims may not be set for Resources at pod-level"
        errors.append(FieldError.forbidden(path.child("claims"), detail))
    errors += validate_resources(resources, _validate_pod_resource_name, claims, path)
    for side in ("requests", "limits"):
        own = resources.get(side, {})
        for name, amount in total(spec, side).items():
            if (
                name in own
                and (side == "requests" or amounts.is_huge_pages(name))
                and amount > Quantity.parse(own[name])
            ):
                detail = f"must be greater than or equal to aggregate container {side} of {amount}"
                errors.append(FieldError.invalid(path.child(side).key(name), own[name], detail))
    most = resources.get("limits", {})
    for i, container in enumerate(spec.get("containers") or ()):
        for name, text in container.get("resources", {}).get("limits", {}).items():
            if name in most and Quantity.parse(text) > Quantity.parse(most[name]):
                where = path.child("containers").index(i).key(name).child("limits")
                errors.append(
                    FieldError.invalid(where, text, f"must be less than or equal to pod limits of {most[name]}")
                )
    return errors


def _validate_pod_resource_name(name: str, path: Path) -> list[FieldError]:
    errors = amounts.validate_name(name, path)
    if not errors and name not in ("cpu", "memory") and not amounts.is_huge_pages(name):
        return [FieldError.not_supported(path, name, ("cpu", "hugepages-", "memory"))]
    return errors


def _validate_host_network(containers: list[Json], path: Path, *, pod: bool) -> list[FieldError]:
    return [
        FieldError.invalid(
            path.child("containers").index(i).child("ports").index(j).child("hostPort"),
            port.get("hostPort", 0),
            "must match `containerPort` when `hostNetwork` is true",
        )
        for i, container in enumerate(containers)
        for j, port in enumerate(container.get("ports", ()))
        if (pod or port.get("hostPort")) and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def _validate_dns(config: Json | None, policy: str, path: Path) -> list[FieldError]:
    if policy == "None":
        if config is None:
            return [FieldError.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [FieldError.required(path.child("nameservers"), detail)]
    if config is None:
        return []
    errors: list[FieldError] = []
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if len(servers) > _NAMESERVERS:
        detail = f"must not have more than {_NAMESERVERS} nameservers"
        errors.append(FieldError.invalid(path.child("nameservers"), servers, detail))
    for i, server in enumerate(servers):
        errors += legacy_ip(server, path.child("nameservers").index(i))
    if len(searches) > _SEARCHES:
        detail = f"must not have more than {_SEARCHES} search paths"
        errors.append(FieldError.invalid(path.child("searches"), searches, detail))
    if len(" ".join(searches)) > _SEARCH_CHARACTERS:
        detail = f"must not have more than {_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        errors.append(FieldError.invalid(path.child("searches"), searches, detail))
    for i, search in enumerate(searches):
        if search != ".":
            where = path.child("searches").index(i)
            errors += checked(names.is_dns1123_subdomain_with_underscore, search.removesuffix("."), where)
    for i, option in enumerate(config.get("options", ())):
        if not option.get("name"):
            errors.append(FieldError.required(path.child("options").index(i), "must not be empty"))
    return errors


def _validate_host_users(spec: Json, path: Path) -> list[FieldError]:
    if spec.get("hostUsers", True):
        return []
    return [
        FieldError.forbidden(path.child(name), "when `hostUsers` is false")
        for field, name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
        if spec.get(field)
    ]


def _validate_names(spec: Json, path: Path) -> list[FieldError]:
    """Validate fields that name other objects."""
    errors: list[FieldError] = []
    for field in ("serviceAccountName", "nodeName"):
        if spec.get(field):
            errors += checked(names.name_is_dns_subdomain, spec[field], path.child(field))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        detail = f"must be between 1 and {_LONGEST_DEADLINE}, inclusive"
        errors.append(FieldError.invalid(path.child("activeDeadlineSeconds"), deadline, detail))
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            errors += checked(names.is_dns1123_label, spec[field], path.child(field))
    return errors


def _validate_hostname_override(spec: Json, path: Path) -> list[FieldError]:
    name, errors = spec.get("hostnameOverride"), []
    if name is None:
        return []
    if spec.get("setHostnameAsFQDN"):
        errors.append(FieldError.forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(FieldError.forbidden(path, "may not be specified when hostNetwork is true"))
    if names.byte_length(name) > _LONGEST_HOSTNAME:
        errors.append(FieldError.too_long(path, _LONGEST_HOSTNAME))
    return errors + checked(names.is_dns1123_subdomain, name, path)


def _validate_rest(spec: Json, path: Path) -> list[FieldError]:
    errors = validate_tolerations(spec.get("tolerations", []), path.child("tolerations"))
    for i, alias in enumerate(spec.get("hostAliases", ())):
        at = path.child("hostAliases").index(i)
        errors += legacy_ip(alias.get("ip", ""), at.child("ip"))
        for j, host in enumerate(alias.get("hostnames", ())):
            errors += checked(names.is_dns1123_subdomain, host, at.child("hostnames").index(j))
    for field in ("priorityClassName", "runtimeClassName"):
        if field in spec:
            errors += checked(names.name_is_dns_subdomain, spec[field], path.child(field))
    if "preemptionPolicy" in spec:
        supported = ("PreemptLowerPriority", "Never")
        errors += one_of(spec["preemptionPolicy"], supported, path.child("preemptionPolicy"))
    if "overhead" in spec:
        view = {"limits": spec["overhead"]}
        errors += validate_resources(view, amounts.validate_container_name, frozenset(), path.child("overhead"))
    if "os" in spec:
        name = spec["os"].get("name", "")
        if not name:
            errors.append(FieldError.required(path.child("os").child("name")))
        elif name not in ("linux", "windows"):
            errors.append(FieldError.not_supported(path.child("os"), name, ("linux", "windows")))
        else:
            errors += validate_os(spec, name, path)
    return errors + _validate_file_keys(spec, path)


def _validate_file_keys(spec: Json, path: Path) -> list[FieldError]:
    """Validate fileKeyRef variables: their volumes are emptyDirs."""
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes", ())}
    errors: list[FieldError] = []
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(kind) or ()):
            for j, variable in enumerate(container.get("env", ())):
                reference = variable.get("valueFrom", {}).get("fileKeyRef")
                if reference is None:
                    continue
                name = reference.get("volumeName", "")
                at = path.child(kind).index(i).child("env").index(j).child("valueFrom").child("fileKeyRef")
                where = at.child("volumeName")
                if name not in volumes:
                    errors.append(FieldError.not_found(where, name))
                elif "emptyDir" not in volumes[name]:
                    errors.append(FieldError.invalid(where, name, "referenced volume must be of type emptyDir"))
    return errors
