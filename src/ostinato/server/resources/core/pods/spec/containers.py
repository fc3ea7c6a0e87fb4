"""Validation of the containers of a Pod spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.environment import validate_env, validate_env_from
from ostinato.server.resources.core.pods.spec.security import validate_security_context
from ostinato.server.resources.core.pods.spec.volumes import validate_devices, validate_mounts
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation import quantities as amounts
from ostinato.server.resources.validation.checks import checked, not_negative, one_of, port_reference

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_EPHEMERAL = "cannot be set for an Ephemeral Container"
# Fields that ephemeral containers cannot have, in the order of the errors.
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_SIDECARS_ALONE = "may not be set for init containers without restartPolicy=Always"
_ONE_HANDLER = "may not specify more than 1 handler type"


class PodView(msgspec.Struct, frozen=True):
    """The parts of a Pod that the validation of a container depends on."""

    volumes: Mapping[str, Json]  # valid volumes, by name
    claims: frozenset[str]
    grace: int
    restart_policy: str
    host_users: bool


def validate_containers(containers: list[Json], pod: PodView, path: Path) -> list[FieldError]:
    if not containers:
        return [FieldError.required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, container in enumerate(containers):
        at = path.index(i)
        errors += _validate_common(container, pod, at)
        name = container.get("name", "")
        if name in seen:
            errors.append(FieldError.duplicate(at.child("name"), name))
        seen.add(name)
        errors += _validate_running(container, pod, at)
        errors += _validate_restart_policy(container, at)
    return errors + _validate_host_ports(containers, path)


def validate_init_containers(containers: list[Json], regular: list[Json], pod: PodView, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = {container.get("name", "") for container in regular}
    for i, container in enumerate(containers):
        at = path.index(i)
        errors += _validate_common(container, pod, at)
        errors += _validate_restart_policy(container, at)
        name = container.get("name", "")
        if name in seen:
            errors.append(FieldError.duplicate(at.child("name"), name))
        elif name:
            seen.add(name)
        errors += _validate_host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            errors += _validate_running(container, pod, at)
            continue
        errors += [
            FieldError.forbidden(at.child(field), _SIDECARS_ALONE)
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
            if field in container
        ]
        detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
        errors += [
            FieldError.invalid(at.child("resizePolicy").index(j).child("restartPolicy"), "RestartContainer", detail)
            for j, policy in enumerate(container.get("resizePolicy", ()))
            if policy.get("restartPolicy") == "RestartContainer"
        ]
    return errors


def validate_ephemeral_containers(containers: list[Json], spec: Json, pod: PodView, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    others = {c.get("name", "") for kind in ("containers", "initContainers") for c in spec.get(kind) or ()}
    seen = set(others)
    for i, container in enumerate(containers):
        at = path.index(i)
        errors += _validate_common(container, pod, at) + validate_image_text(container, at)
        name, target = container.get("name", ""), container.get("targetContainerName", "")
        if name in seen:
            errors.append(FieldError.duplicate(at.child("name"), name))
        seen.add(name)
        if target and target not in others:
            errors.append(FieldError.not_found(at.child("targetContainerName"), target))
        errors += [
            FieldError.forbidden(at.child(field), _EPHEMERAL) for field in _NOT_EPHEMERAL if container.get(field)
        ]
        for j, mount in enumerate(container.get("volumeMounts", ())):
            where = at.child("volumeMounts").index(j)
            errors += [
                FieldError.forbidden(where.child(field), _EPHEMERAL)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return errors


def validate_image_text(container: Json, path: Path) -> list[FieldError]:
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [FieldError.invalid(path.child("image"), image, "must not have leading or trailing whitespace")]


def _validate_common(container: Json, pod: PodView, path: Path) -> list[FieldError]:
    """Validate the fields that all types of containers have."""
    name = container.get("name", "")
    errors = checked(names.is_dns1123_label, name, path.child("name")) if name else _required(path.child("name"))
    if not container.get("image"):
        errors += _required(path.child("image"))
    errors += one_of(
        container.get("terminationMessagePolicy", ""),
        ("File", "FallbackToLogsOnError"),
        path.child("terminationMessagePolicy"),
    )
    errors += _validate_ports(container.get("ports", ()), path.child("ports"))
    errors += validate_env(container.get("env", ()), path.child("env"))
    errors += validate_env_from(container.get("envFrom", ()), path.child("envFrom"))
    errors += validate_mounts(container, pod.volumes, path.child("volumeMounts"))
    errors += validate_devices(container, pod.volumes, path.child("volumeDevices"))
    errors += one_of(
        container.get("imagePullPolicy", ""), ("Always", "IfNotPresent", "Never"), path.child("imagePullPolicy")
    )
    resources = container.get("resources")
    if resources:
        errors += validate_resources(resources, amounts.validate_container_name, pod.claims, path.child("resources"))
    errors += _validate_resize_policies(container.get("resizePolicy", ()), pod, path.child("resizePolicy"))
    if "securityContext" in container:
        errors += validate_security_context(
            container["securityContext"], path.child("securityContext"), host_users=pod.host_users
        )
    return errors


def _required(path: Path) -> list[FieldError]:
    return [FieldError.required(path)]


def _validate_ports(ports: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at = path.index(i)
        name = port.get("name", "")
        if name:
            wrong = checked(field_values.is_port_name, name, at.child("name"))
            if not wrong and name in seen:
                wrong = [FieldError.duplicate(at.child("name"), name)]
            errors += wrong
            seen.add(name)
        number, host = port.get("containerPort", 0), port.get("hostPort", 0)
        where = at.child("containerPort")
        errors += checked(field_values.is_port_number, number, where) if number else _required(where)
        if host:
            errors += checked(field_values.is_port_number, host, at.child("hostPort"))
        errors += one_of(port.get("protocol", ""), _PROTOCOLS, at.child("protocol"))
    return errors


def _validate_host_ports(containers: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports", ())):
            if port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if key in taken:
                    errors.append(FieldError.duplicate(path.index(i).child("ports").index(j).child("hostPort"), key))
                taken.add(key)
    return errors


def _validate_resize_policies(policies: list[Json], pod: PodView, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            errors.append(FieldError.duplicate(path.index(i), name))
        seen.add(name)
        errors += one_of(name, ("cpu", "memory"), path)
        errors += one_of(restart, ("NotRequired", "RestartContainer"), path)
        if pod.restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(FieldError.invalid(path, restart, detail))
    return errors


def _validate_restart_policy(container: Json, path: Path) -> list[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules", [])
    errors: list[FieldError] = []
    where = path.child("restartPolicy")
    if policy is None:
        if not rules:
            return []
        errors.append(FieldError.required(where, "must specify restartPolicy when restart rules are used"))
    elif policy not in ("Always", "Never", "OnFailure"):
        errors.append(FieldError.not_supported(where, policy, ("Always", "Never", "OnFailure")))
    if len(rules) > 20:
        errors.append(FieldError.too_many(path.child("restartPolicyRules"), len(rules), 20))
    for i, rule in enumerate(rules):
        at = path.child("restartPolicyRules").index(i)
        action, codes = rule.get("action", ""), rule.get("exitCodes")
        if action not in ("Restart", "RestartAllContainers"):
            errors.append(FieldError.not_supported(at.child("action"), action, ("Restart", "RestartAllContainers")))
        if codes is None:
            errors.append(FieldError.required(at.child("exitCodes"), "must be specified"))
            continue
        if codes.get("operator", "") not in ("In", "NotIn"):
            operator = at.child("exitCodes").child("operator")
            errors.append(FieldError.not_supported(operator, codes.get("operator", ""), ("In", "NotIn")))
        if len(codes.get("values", ())) > 255:
            errors.append(FieldError.too_many(at.child("exitCodes").child("values"), len(codes["values"]), 255))
    return errors


def _validate_running(container: Json, pod: PodView, path: Path) -> list[FieldError]:
    """Validate the fields of running containers: lifecycle hooks and probes."""
    errors: list[FieldError] = []
    lifecycle = container.get("lifecycle", {})
    for hook in ("postStart", "preStop"):
        if hook in lifecycle:
            kinds = ("exec", "httpGet", "tcpSocket", "sleep")
            errors += _validate_handler(lifecycle[hook], kinds, pod, path.child("lifecycle").child(hook))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            errors += _validate_probe(name, container[name], pod, path.child(name))
    return errors


def _validate_probe(name: str, probe: Json, pod: PodView, path: Path) -> list[FieldError]:
    errors = _validate_handler(probe, ("exec", "httpGet", "tcpSocket", "grpc"), pod, path)
    for field in _PROBE_NUMBERS:
        errors += not_negative(probe.get(field, 0), path.child(field))
    grace, where = probe.get("terminationGracePeriodSeconds"), path.child("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(FieldError.invalid(where, grace, "must be greater than 0"))
    if name == "readinessProbe":
        if grace is not None:
            errors.append(FieldError.invalid(where, grace, "must not be set for readinessProbes"))
    elif probe.get("successThreshold") != 1:
        errors.append(FieldError.invalid(path.child("successThreshold"), probe.get("successThreshold", 0), "must be 1"))
    return errors


def _validate_handler(handler: Json, kinds: tuple[str, ...], pod: PodView, path: Path) -> list[FieldError]:
    """Validate the handler of a probe or a lifecycle hook: exactly one."""
    given = [kind for kind in kinds if kind in handler]
    if not given:
        return [FieldError.required(path, "must specify a handler type")]
    kind, action, at = given[0], handler[given[0]], path.child(given[0])
    errors: list[FieldError] = []
    match kind:
        case "exec":
            errors += [] if action.get("command") else _required(at.child("command"))
        case "httpGet":
            errors += _validate_http_get(action, at)
        case "tcpSocket" | "grpc":
            errors += port_reference(action.get("port", 0), at.child("port"))
        case _:
            seconds = action.get("seconds", 0)
            if not 0 <= seconds <= pod.grace:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({pod.grace})"
                errors.append(FieldError.invalid(at, seconds, detail))
    return errors + [FieldError.forbidden(path.child(other), _ONE_HANDLER) for other in given[1:]]


def _validate_http_get(action: Json, path: Path) -> list[FieldError]:
    errors = [] if action.get("path") else _required(path.child("path"))
    errors += port_reference(action.get("port", 0), path.child("port"))
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        errors.append(FieldError.not_supported(path.child("scheme"), scheme, ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders", ()):
        errors += checked(field_values.is_http_header_name, header.get("name", ""), path.child("httpHeaders"))
    return errors


def validate_resources(
    resources: Json, name_rule: Callable[[str, Path], list[FieldError]], claims: frozenset[str], path: Path
) -> list[FieldError]:
    """Validate limits and requests, separately and against each other."""
    errors: list[FieldError] = []
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for name, amount in limits.items():
        at = path.child("limits").key(name)
        errors += name_rule(name, at) + amounts.validate_amount(name, amount, at)
        errors += amounts.validate_huge_pages(name, amount, at)
    for name, amount in requests.items():
        at = path.child("requests").key(name)
        errors += name_rule(name, at) + amounts.validate_amount(name, amount, at)
        errors += _validate_request(name, amount, limits.get(name), path)
        errors += amounts.validate_huge_pages(name, amount, at)
    given = {*limits, *requests}
    if any(map(amounts.is_huge_pages, given)) and not given & {"cpu", "memory"}:
        errors.append(FieldError.forbidden(path, "HugePages require cpu or memory"))
    return errors + _validate_claims(resources.get("claims", ()), claims, path.child("claims"))


def _validate_request(name: str, amount: str, limit: str | None, path: Path) -> list[FieldError]:
    overcommittable = amounts.is_overcommittable(name)
    if limit is None:
        if overcommittable:
            return []
        return [FieldError.required(path.child("limits"), "Limit must be set for non overcommitable resources")]
    request, most = Quantity.parse(amount), Quantity.parse(limit)
    if request != most and not overcommittable:
        return [FieldError.invalid(path.child("requests"), amount, f"must be equal to {name} limit of {limit}")]
    if request > most:
        detail = f"must be less than or equal to {name} limit of {limit}"
        return [FieldError.invalid(path.child("requests"), amount, detail)]
    return []


def _validate_claims(claims: list[Json], known: frozenset[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            errors += _required(path.index(i))
            continue
        key = f"{name}/{request}" if request else name
        if request:
            errors += checked(names.is_dns1123_label, request, path.index(i).child("request"))
        if name in seen or key in seen or (not request and any(k.startswith(f"{name}/") for k in seen)):
            errors.append(FieldError.duplicate(path.index(i), name if name in seen or not request else key))
        seen.add(key)
        if name not in known:
            detail = "must be one of the names in pod.spec.resourceClaims"
            detail += f": {', '.join(sorted(known))}" if known else " which is empty"
            found = FieldError.not_found(path.index(i), name)
            errors.append(FieldError(found.type, found.field, found.value, detail))
    return errors
