"""Validation of a Pod's status: resource claims, devices and users of containers."""

from __future__ import annotations

from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, listed

_STATUS = Path("status")
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE = 1024
_CONTAINERS = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}
_EPHEMERAL = "ephemeralContainerStatuses"


def validate_ephemeral_statuses(status: Json, before: Json) -> list[FieldError]:
    """Validate that a terminated ephemeral container does not run again."""
    if not before.get(_EPHEMERAL):
        return []
    path, states = _STATUS.child(_EPHEMERAL), _states(status)
    return [
        FieldError.forbidden(path.index(i).child("state"), "may not be transitioned to non-terminated state")
        for i, (name, state) in enumerate(_states(before).items())
        if "terminated" in state and "terminated" not in states.get(name, state)
    ]


def _states(status: Json) -> dict[str, Json]:
    return {each.get("name", ""): each.get("state") or {} for each in status.get(_EPHEMERAL) or ()}


def validate_claims(status: Json, spec: Json) -> list[FieldError]:
    if "resourceClaimStatuses" not in status and "extendedResourceClaimStatus" not in status:
        return []
    path, errors = _STATUS.child("resourceClaimStatuses"), []
    known = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for i, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        name, here = claim.get("name", ""), path.index(i)
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(FieldError.invalid(here.child("name"), name, detail))
        if name in seen:
            errors.append(FieldError.duplicate(here.child("name"), name))
        seen.add(name)
        if claim.get("resourceClaimName") is not None:
            given = claim["resourceClaimName"]
            errors += checked(names.name_is_dns_subdomain, given, here.child("resourceClaimName"))
    return errors + _validate_extended(status.get("extendedResourceClaimStatus"), spec)


def _validate_extended(claim: Json | None, spec: Json) -> list[FieldError]:
    if claim is None:
        return []
    path, errors = _STATUS.child("extendedResourceClaimStatus"), []
    containers = {each.get("name", ""): each for kind in _CONTAINERS.values() for each in spec.get(kind) or ()}
    mappings = claim.get("requestMappings") or []
    if not mappings:
        errors.append(FieldError.required(path.child("requestMappings"), "at least one request mapping is required"))
    seen: set[tuple[str, ...]] = set()
    for i, mapping in enumerate(mappings):
        here, key = path.child("requestMappings").index(i), tuple(mapping.get(field, "") for field in _MAPPED)
        container, resource, request = key
        if container not in containers:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(FieldError.invalid(here.child("containerName"), container, detail))
        elif resource not in (containers[container].get("resources") or {}).get("requests", {}):
            detail = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            errors.append(FieldError.invalid(here.child("resourceName"), resource, detail))
        errors += checked(names.is_dns1123_label, request, path.child("requestName"))
        if key in seen:
            errors += [FieldError.duplicate(here.child(field), mapping.get(field, "")) for field in _MAPPED]
        seen.add(key)
    name = claim.get("resourceClaimName", "")
    if not name:
        return [*errors, FieldError.required(path.child("resourceClaimName"))]
    return errors + checked(names.name_is_dns_subdomain, name, path.child("resourceClaimName"))


_MAPPED = ("containerName", "resourceName", "requestName")


def validate_containers(status: Json, spec: Json) -> list[FieldError]:
    """Validate container statuses: users first, then devices, in the order of the errors."""
    errors: list[FieldError] = []
    windows = (spec.get("os") or {}).get("name") == "windows"
    for field in (*_CONTAINERS, _EPHEMERAL):
        for i, container in enumerate(status.get(field) or ()):
            user = (container.get("user") or {}).get("linux")
            if user is not None:
                errors += _validate_user(user, _STATUS.child(field).index(i).child("user", "linux"), windows=windows)
    for field, kind in _CONTAINERS.items():
        containers = {each.get("name", ""): each for each in reversed(spec.get(kind) or [])}
        for i, container in enumerate(status.get(field) or ()):
            if "allocatedResourcesStatus" not in container:
                continue
            path = _STATUS.child(field).index(i).child("allocatedResourcesStatus")
            for j, resource in enumerate(container.get("allocatedResourcesStatus") or ()):
                errors += _validate_allocated(resource, containers.get(container.get("name", "")), path.index(j))
    return errors + [
        FieldError.forbidden(
            _STATUS.child(_EPHEMERAL).index(i).child("allocatedResourcesStatus"),
            "must not be specified in container status",
        )
        for i, container in enumerate(status.get(_EPHEMERAL) or ())
        if container.get("allocatedResourcesStatus")
    ]


def _validate_user(user: Json, path: Path, *, windows: bool) -> list[FieldError]:
    if windows:
        return [FieldError.forbidden(path, "cannot be set for a windows pod")]
    errors = checked(field_values.is_user_id, user.get("uid", 0), path.child("uid"))
    errors += checked(field_values.is_user_id, user.get("gid", 0), path.child("gid"))
    groups = enumerate(user.get("supplementalGroups") or ())
    here = path.child("supplementalGroups")
    return errors + [error for i, group in groups for error in checked(field_values.is_user_id, group, here.index(i))]


def _validate_allocated(resource: Json, container: Json | None, path: Path) -> list[FieldError]:
    errors, name = [], resource.get("name", "")
    asked = (container or {}).get("resources") or {}
    if name.startswith("claim:"):
        claims = (f"claim:{each['name']}/{each.get('request', '')}".rstrip("/") for each in asked.get("claims") or ())
        known = name in claims
        detail = (
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
            "'claim:<claimName>' if request is empty"
        )
    else:
        known, detail = name in asked.get("requests", {}), "must match one of the container's resource requests"
    if container is not None and not known:
        errors.append(FieldError.invalid(path.child("name"), name, detail))
    seen: set[str] = set()
    for k, device in enumerate(resource.get("resources") or ()):
        here, identity, message = path.child("resources").index(k), device.get("resourceID", ""), device.get("message")
        errors += listed(device.get("health", ""), _HEALTH, here.child("health"))
        if message == "":
            errors.append(FieldError.required(here.child("message"), "must be non-empty if specified"))
        elif message is not None and names.byte_length(message) > _LONGEST_MESSAGE:
            errors.append(FieldError.too_long(here.child("message"), _LONGEST_MESSAGE))
        if identity in seen:
            errors.append(FieldError.duplicate(here.child("resourceID"), identity))
        seen.add(identity)
    return errors
