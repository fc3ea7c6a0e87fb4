"""Validation of webhook configurations, admission policies and their bindings."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.api.gvk import GroupVersion
from ostinato.api.selectors import labels
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.field_values import validate_fully_qualified_name
from ostinato.server.resources.admissionregistration import policy_validation
from ostinato.server.resources.admissionregistration.policy_expressions import Compiler
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked
from ostinato.server.resources.validation.conditions import validate_conditions
from ostinato.server.resources.validation.webhook_client import REVIEWS, client_faults, review_faults

_SPEC = Path("spec")
_OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]
_MUTABLE = ["*", "CONNECT", "CREATE", "UPDATE"]
_FAILURE = ["Fail", "Ignore"]
_MATCH = ["Equivalent", "Exact"]
_SIDE_EFFECTS = ["None", "NoneOnDryRun"]
_ACTIONS = ["Audit", "Deny", "Warn"]
_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_NO_RULES = "validations or auditAnnotations must contain at least one item"


def _supported(value: str | None, supported: list[str], path: Path) -> list[FieldError]:
    return [] if value is None or value in supported else [FieldError.not_supported(path, value, supported)]


def webhooks(hooks: Iterable[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, hook in enumerate(hooks):
        path, name = Path("webhooks").index(i), hook.get("name", "")
        errors += _webhook(hook, path)
        detail = f"must specify one of {', '.join(REVIEWS)}"
        versions = hook.get("admissionReviewVersions") or []
        errors += review_faults(versions, path.child("admissionReviewVersions"), detail=detail)
        if name and name in seen:
            errors.append(FieldError.duplicate(path.child("name"), name))
        seen.add(name)
    return errors


def _webhook(hook: Json, path: Path) -> list[FieldError]:
    errors = validate_fully_qualified_name(hook.get("name", ""), path.child("name"))
    for i, rule in enumerate(hook.get("rules") or ()):
        errors += _rule(rule, path.child("rules").index(i))
    errors += _supported(hook.get("failurePolicy"), _FAILURE, path.child("failurePolicy"))
    errors += _supported(hook.get("matchPolicy"), _MATCH, path.child("matchPolicy"))
    if hook.get("sideEffects") is None:
        detail = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
        errors.append(FieldError.required(path.child("sideEffects"), detail))
    errors += _supported(hook.get("sideEffects"), _SIDE_EFFECTS, path.child("sideEffects"))
    seconds = hook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(FieldError.invalid(path.child("timeoutSeconds"), seconds, detail))
    for field in ("namespaceSelector", "objectSelector"):
        errors += labels.validate_label_selector(hook.get(field) or {}, path.child(field))
    errors += _supported(hook.get("reinvocationPolicy"), ["IfNeeded", "Never"], path.child("reinvocationPolicy"))
    errors += client_faults(hook.get("clientConfig") or {}, path.child("clientConfig"))
    return errors + policy_validation.conditions(hook.get("matchConditions") or [], path.child("matchConditions"))


def _rule(rule: Json, path: Path) -> list[FieldError]:
    operations, at = rule.get("operations") or [], path.child("operations")
    errors = [] if operations else [FieldError.required(at)]
    if len(operations) > 1 and "*" in operations:
        errors.append(FieldError.invalid(at, operations, "if '*' is present, must not specify other operations"))
    for i, operation in enumerate(operations):
        errors += _supported(operation, _OPERATIONS, at.index(i))
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values, at = rule.get(field) or [], path.child(field)
        if not values:
            errors.append(FieldError.required(at))
        if len(values) > 1 and "*" in values:
            errors.append(FieldError.invalid(at, values, f"if '*' is present, must not specify other {what}"))
    at = path.child("apiVersions")
    errors += [FieldError.required(at.index(i)) for i, v in enumerate(rule.get("apiVersions") or ()) if not v]
    errors += _resources(rule.get("resources") or [], path.child("resources"))
    return errors + _supported(rule.get("scope"), ["*", "Cluster", "Namespaced"], path.child("scope"))


def _resources(resources: list[str], path: Path) -> list[FieldError]:
    """Validate the resources of a rule, with subresources after a slash. A wildcard must not overlap with another
    entry.
    """
    errors = [] if resources else [FieldError.required(path)]
    all_of: set[str] = set()  # resources whose subresources are all matched
    everywhere: set[str] = set()  # subresources matched on all resources
    for i, text in enumerate(resources):
        if not text:
            errors.append(FieldError.required(path.index(i)))
        resource, slash, subresource = text.partition("/")
        if not slash:
            continue
        for name, meant, known in ((f"{resource}/*", resource, all_of), (f"*/{subresource}", subresource, everywhere)):
            if meant in known:
                detail = f"if '{name}' is present, must not specify {text}"
                errors.append(FieldError.invalid(path.index(i), text, detail))
        if subresource == "*":
            all_of.add(resource)
        if resource == "*":
            everywhere.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(FieldError.invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    plain = [text for text in resources if text and "/" not in text]
    if "*" in plain and plain[-1] != "*":
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(FieldError.invalid(path, resources, detail))
    return errors


def policy(spec: Json) -> list[FieldError]:
    """Validate the fields that validating and mutating policies share."""
    errors = _supported(spec.get("failurePolicy"), _FAILURE, _SPEC.child("failurePolicy"))
    if spec.get("paramKind") is not None:
        errors += _parameter_kind(spec["paramKind"], _SPEC.child("paramKind"))
    match, path = spec.get("matchConstraints"), _SPEC.child("matchConstraints")
    if match is None:
        errors.append(FieldError.required(path))
    else:
        errors += _match(match, path)
        if not match.get("resourceRules"):
            errors.append(FieldError.required(path.child("resourceRules")))
    return errors + policy_validation.conditions(
        spec.get("matchConditions") or [], _SPEC.child("matchConditions"), spec
    )


def validating_policy(name: str, spec: Json) -> list[FieldError]:
    compiler = Compiler(spec)
    errors = policy(spec) + policy_validation.variables(spec, compiler)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        return errors + [
            FieldError.required(_SPEC.child(field), _NO_RULES) for field in ("validations", "auditAnnotations")
        ]
    errors += policy_validation.validations(spec, compiler)
    return errors + policy_validation.audit_annotations(name, spec, compiler)


def validating_policy_status(status: Json) -> list[FieldError]:
    path = Path("status")
    errors: list[FieldError] = []
    warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
    for i, warning in enumerate(warnings):
        at = path.child("typeChecking", "expressionWarnings").index(i)
        errors += [
            FieldError.required(at.child(field))
            for field in ("warning", "fieldRef")
            if not warning.get(field, "").strip()
        ]
    return errors + validate_conditions(status.get("conditions") or [], path.child("conditions"))


def mutating_policy(spec: Json) -> list[FieldError]:
    compiler = Compiler(spec)
    errors = policy(spec)
    path = _SPEC.child("matchConstraints", "resourceRules", "operations")
    errors += _mutable(spec.get("matchConstraints") or {}, path)
    errors += policy_validation.variables(spec, compiler) + policy_validation.mutations(spec, compiler)
    again, path = spec.get("reinvocationPolicy", ""), _SPEC.child("reinvocationPolicy")
    return errors + (_supported(again, ["IfNeeded", "Never"], path) if again else [FieldError.required(path)])


def _parameter_kind(kind: Json, path: Path) -> list[FieldError]:
    text, at, errors = kind.get("apiVersion", ""), path.child("apiVersion"), []
    if not text:
        errors.append(FieldError.required(at))
    else:
        try:
            parsed = GroupVersion.parse(text)
        except ValueError as error:
            errors.append(FieldError.invalid(at, text, str(error)))
        else:
            faults = names.is_dns1123_subdomain(parsed.group) if parsed.group else []
            errors += [FieldError.invalid(at, parsed.group, ",".join(faults))] if faults else []
            faults = names.is_dns1035_label(parsed.version)
            errors += [FieldError.invalid(at, parsed.version, ",".join(faults))] if faults else []
    name = kind.get("kind", "")
    if not name:
        errors.append(FieldError.required(path.child("kind")))
    elif faults := names.is_dns1035_label(name.lower()):
        detail = "may have mixed case, but should otherwise match: " + ",".join(faults)
        errors.append(FieldError.invalid(path.child("kind"), name, detail))
    return errors


def _match(match: Json, path: Path) -> list[FieldError]:
    errors = _supported(match.get("matchPolicy"), _MATCH, path.child("matchPolicy"))
    for field in ("namespaceSelector", "objectSelector"):
        errors += labels.validate_label_selector(match.get(field) or {}, path.child(field))
    for field in ("resourceRules", "excludeResourceRules"):
        for i, rule in enumerate(match.get(field) or ()):
            errors += _resource_names(
                rule.get("resourceNames") or (), path.child(field).index(i).child("resourceNames")
            )
            errors += _rule(rule, path.child(field).index(i))
    return errors


def _resource_names(given: Iterable[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, name in enumerate(given):
        errors += checked(names.name_is_path_segment, name, path.index(i))
        if name in seen:
            errors.append(FieldError.duplicate(path.index(i), name))
        seen.add(name)
    return errors


def mutating_binding(spec: Json) -> list[FieldError]:
    match = spec.get("matchResources") or {}
    return binding(spec) + _mutable(match, _SPEC.child("matchResources", "resourceRules", "operations"))


def _mutable(match: Json, path: Path) -> list[FieldError]:
    """Validate that a mutating rule does not match DELETE."""
    operations = [operation for rule in match.get("resourceRules") or () for operation in rule.get("operations") or ()]
    return [error for operation in operations for error in _supported(operation, _MUTABLE, path)]


def binding(spec: Json) -> list[FieldError]:
    name, path = spec.get("policyName", ""), _SPEC.child("policyName")
    errors = checked(names.name_is_dns_subdomain, name, path) if name else [FieldError.required(path)]
    if spec.get("paramRef") is not None:
        errors += _parameter_reference(spec["paramRef"], _SPEC.child("paramRef"))
    return errors + _match(spec.get("matchResources") or {}, _SPEC.child("matchResources"))


def _parameter_reference(reference: Json, path: Path) -> list[FieldError]:
    name, selector, errors = reference.get("name", ""), reference.get("selector"), []
    exclusive = "name and selector are mutually exclusive"
    if name:
        errors += checked(names.name_is_path_segment, name, path.child("name"))
        if selector is not None:
            errors.append(FieldError.forbidden(path.child("name"), exclusive))
    if selector is not None:
        errors += labels.validate_label_selector(selector, path.child("selector"))
        if name:
            errors.append(FieldError.forbidden(path.child("selector"), exclusive))
    if not name and selector is None:
        errors.append(FieldError.required(path, "one of name or selector must be specified"))
    action, at = reference.get("parameterNotFoundAction"), path.child("parameterNotFoundAction")
    return errors + (_supported(action, ["Deny", "Allow"], at) if action else [FieldError.required(at)])


def actions(wanted: list[str]) -> list[FieldError]:
    """Validate the validationActions of a binding."""
    path, errors = _SPEC.child("validationActions"), []
    for i, action in enumerate(wanted):
        errors += _supported(action, _ACTIONS, path.index(i))
        if action in wanted[:i]:
            errors.append(FieldError.duplicate(path.index(i), action))
    if "Deny" in wanted and "Warn" in wanted:
        errors.append(FieldError.invalid(path, wanted, _BOTH))
    if not wanted:
        errors.append(FieldError.required(path, "at least one validation action is required"))
    return errors
