"""Hooks: shell-operator's hook directories, and hooks as Python functions.

Manager().add(Hooks("hooks/")).run()          # or: ostinato hooks hooks/

@hook(watch("pods", Pod), cron("@hourly"), group="pods")
def count(ctx: HookContext) -> None:
    ctx.gauge("pods", len(ctx.snapshots["pods"]))
"""

from __future__ import annotations

from ostinato.frontends.hooks.hooks import Hooks, HooksOptions
from ostinato.frontends.hooks.loading import HooksError
from ostinato.frontends.hooks.native import HookFunction, cron, hook, startup, watch
from ostinato.frontends.hooks.running.function import HookContext, SnapshotObject, TriggerContext
from ostinato.frontends.hooks.webhooks.serving import WebhookOptions

__all__ = [
    "HookContext",
    "HookFunction",
    "Hooks",
    "HooksError",
    "HooksOptions",
    "SnapshotObject",
    "TriggerContext",
    "WebhookOptions",
    "cron",
    "hook",
    "startup",
    "watch",
]
