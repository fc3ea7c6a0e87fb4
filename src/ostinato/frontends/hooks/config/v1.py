"""Version v1 of the configuration.

The fields are those of shell-operator, and `x-ostinato` for additions, at the top and in entries of `kubernetes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersion
from ostinato.api.selectors.fields import escape
from ostinato.api.text.cron import ScheduleError
from ostinato.frontends.hooks.config.bindings import (
    MAIN,
    AdmissionBinding,
    ConversionBinding,
    HookConfig,
    KubernetesBinding,
    RunOptions,
    ScheduleBinding,
    Settings,
)
from ostinato.frontends.hooks.config.fields import ConfigError, Fields
from ostinato.frontends.kernel.cron import parse_crontab
from ostinato.frontends.kernel.snapshots.filters import CelFilter, Filter, FilterError, JqFilter, JsonPathFilter

EXTENSION: Final = "x-ostinato"
_CHANGES: Final = ("Added", "Modified", "Deleted")
_EQUAL: Final = {"=": "=", "==": "=", "Equals": "=", "!=": "!=", "NotEquals": "!="}


def config_v1(fields: Fields, time_zone: str) -> HookConfig:
    """Return the configuration. Raises ConfigError."""
    order = fields.integer("onStartup", 0) if "onStartup" in fields else None
    fields.raw("onStartup")
    options = _run_options(fields.below(EXTENSION))
    config = HookConfig(
        on_startup=order,
        settings=_settings(fields.below("settings")),
        kubernetes=tuple(_kubernetes(each, options) for each in fields.each("kubernetes")),
        schedules=tuple(_schedule(each, time_zone) for each in fields.each("schedule")),
        admission=(
            *(_admission(each, mutating=False) for each in fields.each("kubernetesValidating")),
            *(_admission(each, mutating=True) for each in fields.each("kubernetesMutating")),
        ),
        conversions=tuple(_conversion(each) for each in fields.each("kubernetesCustomResourceConversion")),
        options=options,
    )
    fields.finish()
    if not (config.on_startup is not None or config.kubernetes or config.schedules or config.has_webhooks):
        raise ConfigError("no bindings; set onStartup, schedule, kubernetes or another binding")
    return with_groups(config)


def with_groups(config: HookConfig) -> HookConfig:
    """Check the names in includeSnapshotsFrom, and add the bindings of a group to those of each of its members."""
    names = [each.name for each in config.kubernetes]
    members: dict[str, list[str]] = {}
    for each in config.kubernetes:
        if each.group:
            members.setdefault(each.group, []).append(each.name)

    def completed(bindings: Iterable[Any], where: str) -> tuple[Any, ...]:
        return tuple(_included(each, f"{where}[{n}]", names, members) for n, each in enumerate(bindings))

    return msgspec.structs.replace(
        config,
        kubernetes=completed(config.kubernetes, "kubernetes"),
        schedules=completed(config.schedules, "schedule"),
        admission=completed(config.admission, "kubernetesValidating"),
        conversions=completed(config.conversions, "kubernetesCustomResourceConversion"),
    )


def _included(binding: Any, where: str, names: list[str], members: dict[str, list[str]]) -> Any:
    for each in binding.include_snapshots:
        count = names.count(each)
        if count == 0:
            raise ConfigError(f"{where}.includeSnapshotsFrom: no kubernetes binding has the name {each!r}")
        if count > 1:
            raise ConfigError(f"{where}.includeSnapshotsFrom: {count} kubernetes bindings have the name {each!r}")
    merged = dict.fromkeys((*binding.include_snapshots, *members.get(binding.group, ())))
    return msgspec.structs.replace(binding, include_snapshots=tuple(merged))


def _run_options(fields: Fields | None) -> RunOptions:
    if fields is None:
        return RunOptions()
    retry = fields.below("retry")
    found = RunOptions(
        timeout=fields.duration("timeout"),
        managed_fields=fields.flag("managedFields", default=True),
        **({} if retry is None else _retry(retry)),
    )
    fields.finish()
    return found


def _retry(fields: Fields) -> dict[str, Any]:
    found = {
        "attempts": fields.integer("attempts", 0),
        "backoff": fields.duration("backoff", 5.0),
        "longest_backoff": fields.duration("maxBackoff", 32.0),
    }
    fields.finish()
    return found


def _settings(fields: Fields | None) -> Settings | None:
    if fields is None:
        return None
    found = Settings(fields.duration("executionMinInterval"), fields.integer("executionBurst", 1) or 1)
    fields.finish()
    return found


def _schedule(fields: Fields, time_zone: str) -> ScheduleBinding:
    crontab = fields.text("crontab", required=True)
    try:
        schedule = parse_crontab(crontab, time_zone)
    except ScheduleError as error:
        raise fields.error("crontab", str(error)) from None
    return ScheduleBinding(
        name=fields.text("name") or "schedule",
        crontab=crontab,
        schedule=schedule,
        queue=fields.text("queue") or MAIN,
        group=fields.text("group"),
        include_snapshots=fields.texts("includeSnapshotsFrom", empty=False) or (),
        allow_failure=fields.flag("allowFailure", default=False),
    )


def _kubernetes(fields: Fields, options: RunOptions) -> KubernetesBinding:
    api_version = fields.text("apiVersion")
    try:
        GroupVersion.parse(api_version)
    except ValueError as error:
        raise fields.error("apiVersion", str(error)) from None
    older = fields.texts("watchEvent", among=_CHANGES)
    events = fields.texts("executeHookOnEvent", among=_CHANGES)
    chosen = events if events is not None else older
    queue = fields.text("queue")
    names = _names(fields.below("nameSelector"))
    extension = fields.below(EXTENSION)
    namespaces, namespace_labels = _namespaces(fields.below("namespace"))
    binding = KubernetesBinding(
        name=fields.text("name") or "kubernetes",
        kind=fields.text("kind", required=True),
        api_version=api_version,
        events=_CHANGES if chosen is None else chosen,
        on_synchronization=fields.flag("executeHookOnSynchronization", default=True),
        wait_for_synchronization=fields.flag("waitForSynchronization", default=True) or not queue,
        names=names,
        namespaces=namespaces,
        namespace_labels=namespace_labels,
        labels=fields.selector("labelSelector"),
        fields=_field_selector(fields.below("fieldSelector"), names),
        reduce=_filter(fields, extension),
        keep_objects=fields.flag("keepFullObjectsInMemory", default=True),
        resync=fields.duration("resynchronizationPeriod"),
        queue=queue or MAIN,
        group=fields.text("group"),
        include_snapshots=fields.texts("includeSnapshotsFrom", empty=False) or (),
        allow_failure=fields.flag("allowFailure", default=False),
        key="object" if extension and extension.text("key", among=("queue", "object")) == "object" else "queue",
        managed_fields=options.managed_fields,
    )
    if extension is not None:
        extension.finish()
    return binding


def _filter(fields: Fields, extension: Fields | None) -> Filter | None:
    program = fields.text("jqFilter")
    expression = extension.text("celFilter") if extension else ""
    path = extension.text("jsonPathFilter") if extension else ""
    if sum(map(bool, (program, expression, path))) > 1:
        raise fields.error("jqFilter", "set one of jqFilter, celFilter and jsonPathFilter")
    try:
        if program:
            return JqFilter(program)
        if expression:
            return CelFilter(expression)
        return JsonPathFilter(path) if path else None
    except FilterError as error:
        raise fields.error("jqFilter" if program else EXTENSION, str(error)) from None


def _names(fields: Fields | None) -> tuple[str, ...]:
    if fields is None:
        return ()
    names = fields.texts("matchNames")
    fields.finish()
    if names is None:
        raise fields.error("matchNames", "required")
    return names


def _namespaces(fields: Fields | None) -> tuple[tuple[str, ...], Any]:
    if fields is None:
        return ("",), None
    if "nameSelector" not in fields and "labelSelector" not in fields:
        raise ConfigError(f"{fields.path}: set nameSelector or labelSelector")
    names = _names(fields.below("nameSelector"))
    labels = fields.selector("labelSelector")
    fields.finish()
    return ((), labels) if labels is not None else (names or ("",), None)


def _field_selector(fields: Fields | None, names: tuple[str, ...]) -> str:
    if fields is None:
        return ""
    if "matchExpressions" not in fields:
        raise fields.error("matchExpressions", "required")
    terms = []
    for each in fields.each("matchExpressions"):
        field = each.text("field", required=True)
        operator = _EQUAL[each.text("operator", required=True, among=tuple(_EQUAL))]
        if field == "metadata.name" and names:
            raise each.error("field", "metadata.name and nameSelector.matchNames are mutually exclusive")
        terms.append(f"{field}{operator}{escape(each.text('value', required=True))}")
    fields.finish()
    return ",".join(terms)


def _admission(fields: Fields, *, mutating: bool) -> AdmissionBinding:
    name = fields.text("name", required=True)
    if name.count(".") < 2:
        raise fields.error("name", f"{name!r} needs three parts or more, such as check.crontabs.example.com")
    webhook: dict[str, Any] = {
        "name": name,
        "rules": [_rule(each) for each in fields.each("rules")],
        "failurePolicy": fields.text("failurePolicy", "Fail", among=("Ignore", "Fail")),
        "sideEffects": fields.text("sideEffects", "None", among=("None", "NoneOnDryRun")),
        "timeoutSeconds": fields.integer("timeoutSeconds", 10),
        "matchPolicy": "Equivalent",
    }
    if fields.selector("labelSelector") is not None:
        webhook["objectSelector"] = fields.raw("labelSelector")
    namespace = fields.below("namespace")
    if namespace is not None:
        if namespace.selector("labelSelector") is None:
            raise namespace.error("labelSelector", "required")
        webhook["namespaceSelector"] = namespace.raw("labelSelector")
        namespace.finish()
    if fields.raw("matchConditions"):
        webhook["matchConditions"] = [
            {"name": each.text("name", required=True), "expression": each.text("expression", required=True)}
            for each in fields.each("matchConditions")
        ]
    return AdmissionBinding(
        name=name,
        mutating=mutating,
        webhook=webhook,
        group=fields.text("group"),
        include_snapshots=fields.texts("includeSnapshotsFrom", empty=False) or (),
    )


def _rule(fields: Fields) -> dict[str, Any]:
    operations = ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")
    rule: dict[str, Any] = {}
    for name in ("apiGroups", "apiVersions", "resources", "operations"):
        values = fields.texts(name, among=operations if name == "operations" else (), empty=False)
        if values is None:
            raise fields.error(name, "required")
        rule[name] = list(values)
    if scope := fields.text("scope", among=("Cluster", "Namespaced", "*")):
        rule["scope"] = scope
    return rule


def _conversion(fields: Fields) -> ConversionBinding:
    rules = tuple(
        (each.text("fromVersion", required=True), each.text("toVersion", required=True))
        for each in fields.each("conversions")
    )
    if not rules:
        raise fields.error("conversions", "required")
    return ConversionBinding(
        name=fields.text("name", required=True),
        definition=fields.text("crdName", required=True),
        rules=rules,
        group=fields.text("group"),
        include_snapshots=fields.texts("includeSnapshotsFrom", empty=False) or (),
    )
