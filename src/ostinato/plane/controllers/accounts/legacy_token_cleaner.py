"""Legacy service account token cleaner: invalidates and deletes unused, auto-generated token Secrets.

- A Secret is auto-generated if its service account lists it.
- If it was not used for a year and no Pod mounts it, it gets the label `kubernetes.io/legacy-token-invalid-since` and
  the API server rejects its token. One year later it is deleted.
- Usage is known from the date on which the API server began to track it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from ostinato.api.errors import Conflict, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.core_v1 import ConfigMap, Pod, Secret, ServiceAccount
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.accounts.token_secrets import ACCOUNT, ACCOUNT_UID, SECRETS, TYPE
from ostinato.server.access.authentication.service_accounts.legacy_tokens import INVALID_SINCE, LAST_USED

NAME: Final = "legacy-serviceaccount-token-cleaner-controller"
_CLEANUP_PERIOD: Final = timedelta(days=365)
_INTERVAL: Final = 86_400.0  # seconds between two checks of a Secret
_TRACKING: Final = NamespacedName("kube-system", "kube-apiserver-legacy-service-account-token-tracking")


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    manager.build(NAME).watch_for(Secret, settings=SECRETS).complete(LegacyTokenCleaner())


class LegacyTokenCleaner:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        secret = await ctx.client.live.get(Secret, request, missing=None)
        if secret is None or secret.type != TYPE:
            return None
        now = ctx.world.clock.now()
        if await self._is_unused(secret, now, ctx):
            try:
                await self._invalidate_or_delete(secret, now, ctx)
            except (Conflict, NotFound):  # the change enqueues it again
                return None
        return Result(requeue_after=_INTERVAL)

    async def _is_unused(self, secret: Secret, now: datetime, ctx: Context) -> bool:
        meta, kept_since = secret.metadata, now - _CLEANUP_PERIOD
        if meta.deletion_timestamp is not None or meta.creation_timestamp is None:
            return False
        if meta.creation_timestamp >= kept_since:
            return False
        tracked = await _tracked_since(ctx)
        if tracked is None or now < tracked + _CLEANUP_PERIOD:
            return False
        if LAST_USED in meta.labels:
            used = _date(meta.labels[LAST_USED])
            if used is None or used >= kept_since.date():
                return False
        return await self._is_generated(secret, ctx) and not await _is_mounted(secret, ctx)

    async def _is_generated(self, secret: Secret, ctx: Context) -> bool:
        meta = secret.metadata
        name = meta.annotations.get(ACCOUNT, "")
        account = None
        if name:
            account = await ctx.client.live.get(ServiceAccount, NamespacedName(meta.namespace, name), missing=None)
        if account is None or meta.annotations.get(ACCOUNT_UID, account.metadata.uid) != account.metadata.uid:
            return False
        return any(each.name == meta.name for each in account.secrets)

    async def _invalidate_or_delete(self, secret: Secret, now: datetime, ctx: Context) -> None:
        meta = secret.metadata
        since = _date(meta.labels.get(INVALID_SINCE, ""))
        if since is None:
            meta.labels[INVALID_SINCE] = now.date().isoformat()
            await ctx.client.update(secret)
        elif since < (now - _CLEANUP_PERIOD).date():
            await ctx.client.delete(secret, resource_version=meta.resource_version or "", missing_ok=True)


async def _tracked_since(ctx: Context) -> datetime | None:
    """Return the date from which token usage is tracked; None if it is not tracked."""
    found = await ctx.client.live.get(ConfigMap, _TRACKING, missing=None)
    day = None if found is None else _date(found.data.get("since", ""))
    return None if day is None else datetime.combine(day + timedelta(days=1), time(), UTC)


async def _is_mounted(secret: Secret, ctx: Context) -> bool:
    pods = await ctx.client.live.list(Pod, namespace=secret.metadata.namespace)
    return any(secret.metadata.name in _secrets_of(pod) for pod in pods)


def _secrets_of(pod: Pod) -> Iterator[str | None]:
    """Yield the names of the Secrets that a Pod uses."""
    spec = pod.spec
    yield from (each.name for each in spec.image_pull_secrets)
    containers: list[Any] = [
        *spec.init_containers,
        *spec.containers,
        *spec.ephemeral_containers,
    ]  # Any: mixed types
    for container in containers:
        yield from (each.secret_ref.name for each in container.env_from if each.secret_ref is not None)
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.secret_key_ref is not None:
                yield variable.value_from.secret_key_ref.name
    for volume in spec.volumes:
        if volume.secret is not None:
            yield volume.secret.secret_name
        if volume.projected is not None:
            yield from (each.secret.name for each in volume.projected.sources if each.secret is not None)


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
