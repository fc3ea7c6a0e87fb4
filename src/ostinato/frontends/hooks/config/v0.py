"""Version v0 of the configuration: the older names, without snapshots, queues and Synchronization."""

from __future__ import annotations

from typing import Final

from ostinato.api.text.cron import ScheduleError
from ostinato.frontends.hooks.config.bindings import HookConfig, KubernetesBinding, ScheduleBinding
from ostinato.frontends.hooks.config.fields import ConfigError, Fields
from ostinato.frontends.kernel.cron import parse_crontab
from ostinato.frontends.kernel.snapshots.filters import FilterError, JqFilter

_EVENTS: Final = {"add": "Added", "update": "Modified", "delete": "Deleted"}


def config_v0(fields: Fields, time_zone: str) -> HookConfig:
    """Return the configuration. Raises ConfigError."""
    order = fields.integer("onStartup", 0) if "onStartup" in fields else None
    fields.raw("onStartup")
    schedules = tuple(_schedule(each, time_zone) for each in fields.each("schedule"))
    kubernetes = tuple(_kubernetes(each) for each in fields.each("onKubernetesEvent"))
    fields.finish()
    if order is None and not schedules and not kubernetes:
        raise ConfigError("no bindings; set onStartup, schedule or onKubernetesEvent")
    return HookConfig(version="v0", on_startup=order, schedules=schedules, kubernetes=kubernetes)


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
        allow_failure=fields.flag("allowFailure", default=False),
    )


def _kubernetes(fields: Fields) -> KubernetesBinding:
    name = fields.text("objectName")
    program = fields.text("jqFilter")
    try:
        reduce = JqFilter(program) if program else None
    except FilterError as error:
        raise fields.error("jqFilter", str(error)) from None
    events = fields.texts("event", among=tuple(_EVENTS)) or ()
    return KubernetesBinding(
        name=fields.text("name") or "onKubernetesEvent",
        kind=fields.text("kind", required=True),
        events=tuple(_EVENTS[each] for each in events),
        on_synchronization=False,
        names=(name,) if name else (),
        namespaces=_namespaces(fields.below("namespaceSelector")),
        labels=fields.selector("selector"),
        reduce=reduce,
        allow_failure=fields.flag("allowFailure", default=False),
    )


def _namespaces(fields: Fields | None) -> tuple[str, ...]:
    if fields is None:
        return ("",)
    names, everything = fields.texts("matchNames") or (), fields.flag("any", default=False)
    fields.finish()
    return ("",) if everything or not names else names
