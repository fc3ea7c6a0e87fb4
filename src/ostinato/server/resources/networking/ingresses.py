"""Strategies of Ingresses and IngressClasses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from ostinato.api.validation import addresses, field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import checked, legacy_ip, listed, named, unchanged

_SPEC = Path("spec")
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES: Final = ["Exact", "ImplementationSpecific", "Prefix"]
_NOT_IN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_THE_END: Final = ("/..", "/.")
_LONGEST_CONTROLLER: Final = 250


class Ingress(Strategy):
    generation = True
    empty_status: ClassVar[Json] = {"loadBalancer": {}}

    def validate(self, obj: Json) -> list[FieldError]:
        errors = _ingress(obj, None)
        old_way = (obj["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
        if old_way is not None and (obj.get("spec") or {}).get("ingressClassName", old_way) != old_way:
            detail = "must match `ingressClassName` when both are specified"
            errors.append(FieldError.invalid(Path("annotations", _CLASS_ANNOTATION), old_way, detail))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return _ingress(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        path, errors = Path("status", "loadBalancer", "ingress"), list[FieldError]()
        existing = [balancer["ip"] for balancer in _balancers(old) if balancer.get("ip")]
        for i, balancer in enumerate(_balancers(new)):
            ip, host, at = balancer.get("ip", ""), balancer.get("hostname", ""), path.index(i)
            errors += legacy_ip(ip, at.child("ip"), existing) if ip else []
            errors += checked(names.is_dns1123_subdomain, host, at.child("hostname")) if host else []
            if addresses.parse_ip(host) is not None:
                errors.append(FieldError.invalid(at.child("hostname"), host, "must be a DNS name, not an IP address"))
        return errors

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        annotations = new["metadata"].get("annotations") or {}
        if old is None and _CLASS_ANNOTATION in annotations and "ingressClassName" not in new.get("spec", {}):
            return [f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []


def _balancers(ingress: Json) -> list[Json]:
    found: list[Json] = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return found


def _ingress(obj: Json, old: Json | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    rules, backend, errors = spec.get("rules"), spec.get("defaultBackend"), []
    if not rules and backend is None:
        errors.append(FieldError.invalid(_SPEC, rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend(backend, _SPEC.child("defaultBackend"))
    for i, rule in enumerate(rules or ()):
        errors += _rule(rule, _SPEC.child("rules").index(i))
    any_secret = old is not None and _has_bad_secret((old.get("spec") or {}).get("tls") or ())
    for i, tls in enumerate(spec.get("tls") or ()):
        path = _SPEC.child("tls").index(i)
        for j, host in enumerate(tls.get("hosts") or ()):
            errors += _host(host, path.child("hosts").index(j))
        if tls.get("secretName") and not any_secret:
            errors += checked(names.name_is_dns_subdomain, tls["secretName"], path.child("secretName"))
    if "ingressClassName" in spec:
        errors += checked(names.name_is_dns_subdomain, spec["ingressClassName"], _SPEC.child("ingressClassName"))
    return errors


def _has_bad_secret(entries: Iterable[Json]) -> bool:
    """Whether the stored object has an invalid Secret name, which may then remain."""
    return any(names.name_is_dns_subdomain(tls["secretName"]) for tls in entries if tls.get("secretName"))


def _host(host: str, path: Path) -> list[FieldError]:
    rule = names.is_wildcard_dns1123_subdomain if "*" in host else names.is_dns1123_subdomain
    return checked(rule, host, path)


def _rule(rule: Json, path: Path) -> list[FieldError]:
    host, at = rule.get("host", ""), path.child("host")
    errors = []
    if addresses.parse_ip(host) is not None:
        errors.append(FieldError.invalid(at, host, "must be a DNS name, not an IP address"))
    if host:
        errors += _host(host, at)
    if rule.get("http") is not None:
        paths = rule["http"].get("paths") or ()
        at = path.child("http", "paths")
        if not paths:
            errors.append(FieldError.required(at))
        for i, one in enumerate(paths):
            errors += _path(one, at.index(i))
    return errors


def _path(one: Json, path: Path) -> list[FieldError]:
    kind, text, at = one.get("pathType"), one.get("path", ""), path.child("path")
    if kind is None:
        return [FieldError.required(path.child("pathType"), "pathType must be specified")]
    errors = listed(kind, _PATH_TYPES, path.child("pathType"))
    exact = kind in ("Exact", "Prefix")
    if not errors and not text.startswith("/") and (exact or text):
        errors.append(FieldError.invalid(at, text, "must be an absolute path"))
    if exact:
        errors += [FieldError.invalid(at, text, f"must not contain '{part}'") for part in _NOT_IN_PATHS if part in text]
        ends = [end for end in _NOT_AT_THE_END if text.endswith(end)]
        errors += [FieldError.invalid(at, text, f"cannot end with '{end}'") for end in ends]
    return errors + _backend(one.get("backend") or {}, path.child("backend"))


def _backend(backend: Json, path: Path) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [FieldError.invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _local_object(resource, path.child("resource"))
    if service is None:
        return [FieldError.invalid(path, "", "resource or service backend is required")]
    name, at = service.get("name", ""), path.child("service")
    errors = (
        checked(names.name_is_dns_label, name, at.child("name")) if name else [FieldError.required(at.child("name"))]
    )
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        errors.append(FieldError.invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += checked(field_values.is_port_name, port["name"], at.child("port", "name"))
    elif port.get("number"):
        errors += checked(field_values.is_port_number, port["number"], at.child("port", "number"))
    else:
        errors.append(FieldError.required(path, "port name or number is required"))
    return errors


def _local_object(reference: Json, path: Path) -> list[FieldError]:
    errors = []
    if reference.get("apiGroup") is not None:
        errors += checked(names.is_dns1123_subdomain, reference["apiGroup"], path.child("apiGroup"))
    for field in ("kind", "name"):
        errors += named(reference.get(field, ""), path.child(field))
    return errors


class IngressClass(Strategy):
    generation = True

    def default(self, obj: Json) -> None:
        parameters = obj.get("spec", {}).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj.get("spec") or {}
        controller, path, errors = spec.get("controller", ""), _SPEC.child("controller"), []
        if names.byte_length(controller) > _LONGEST_CONTROLLER:
            errors.append(FieldError.too_long(path, _LONGEST_CONTROLLER))
        errors += field_values.validate_domain_prefixed_path(controller, path)
        if spec.get("parameters") is not None:
            errors += _parameters(spec["parameters"], _SPEC.child("parameters"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        before, after = (obj.get("spec", {}).get("controller", "") for obj in (old, new))
        return unchanged(after, before, _SPEC.child("controller")) + self.validate(new)


def _parameters(parameters: Json, path: Path) -> list[FieldError]:
    errors = _local_object(parameters, path)
    scope, namespace, at = parameters["scope"], parameters.get("namespace"), path.child("namespace")
    errors += listed(scope, ["Cluster", "Namespace"], path.child("scope"))
    if scope == "Namespace":
        if namespace is None:
            errors.append(FieldError.required(at, "`parameters.scope` is set to 'Namespace'"))
        else:
            errors += checked(names.name_is_dns_label, namespace, at)
    elif scope == "Cluster" and namespace is not None:
        errors.append(FieldError.forbidden(at, "`parameters.scope` is set to 'Cluster'"))
    return errors
