"""Webhook authorizer: posts SubjectAccessReviews over HTTPS.

- Decisions are cached, with separate TTLs for allowed and other ones. Very long attributes are not cached.
- Concurrent equal reviews share one call.
- Failed calls are retried; then `failurePolicy` decides: deny or no opinion.
- Redirects are not followed. Reviews are not logged.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.api.errors import from_response
from ostinato.client.config import in_cluster
from ostinato.client.config.config import Config
from ostinato.client.transport.protocol import Request, Transport, TransportError
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.configuration import ConfigurationError, Configured
from ostinato.server.access.authorization.decision import NO_OPINION, Decision, ResolvedRules
from ostinato.server.request import User
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.access.authorization.conditions import Conditions

Json = dict[str, Any]

_CACHE_SIZE: Final = 8192  # entries
_LONGEST_CACHED: Final = 10_000  # characters of client-controlled attributes
_RETRIES: Final = 4
_FIRST_WAIT: Final = 0.5
_FACTOR: Final = 1.5
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
_logger = logging.getLogger(__name__)


class WebhookFailed(Exception):  # noqa: N818
    """The webhook returned no decision."""


class WebhookAuthorizer:
    """Webhook mode."""

    def __init__(self, world: World, configured: Configured, transport: Transport | None = None) -> None:
        """ConfigurationError if the kubeconfig cannot be read.

        `transport`: replaces the transport that the kubeconfig describes. Defaults to none.
        """
        assert configured.webhook is not None
        self._name = configured.name
        self._settings = configured.webhook
        self._clock = world.clock
        self._transport = transport or _transport(world, configured)
        self._conditions: Conditions | None = None
        if self._settings.conditions:
            from ostinato.server.access.authorization.conditions import Conditions  # noqa: PLC0415 - loads CEL

            self._conditions = Conditions(self._settings.conditions)
        self._cache: OrderedDict[bytes, tuple[float, Decision]] = OrderedDict()  # expiry, decision
        self._pending: dict[bytes, asyncio.Task[Decision]] = {}

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision | None:
        spec = _spec(user, attributes)
        skipped = self._skipped(spec)
        return self._known(msgspec.json.encode(spec)) if skipped is None else skipped

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        spec = _spec(user, attributes)
        skipped = self._skipped(spec)
        if skipped is not None:
            return skipped
        key = msgspec.json.encode(spec)
        known = self._known(key)
        if known is not None:
            return known
        task = self._pending.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(
                self._review(key, cacheable=_length(attributes) < _LONGEST_CACHED)
            )
            self._pending[key] = task
            task.add_done_callback(lambda _: self._pending.pop(key, None))
        return await asyncio.shield(task)  # other requests may await it

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        return ResolvedRules([], incomplete=True, error="webhook authorizer does not support user rule resolution")

    async def close(self) -> None:
        await self._transport.close()

    def _skipped(self, spec: Json) -> Decision | None:
        """The decision if the match conditions exclude the request or fail; None if they match."""
        if self._conditions is None:
            return None
        from ostinato.server.access.authorization.conditions import ConditionError  # noqa: PLC0415

        try:
            return None if self._conditions.hold(_complete(spec)) else NO_OPINION
        except ConditionError as error:
            return self._failed(str(error))

    def _known(self, key: bytes) -> Decision | None:
        kept = self._cache.get(key)
        if kept is None:
            return None
        if kept[0] <= self._clock.monotonic():
            del self._cache[key]
            return None
        self._cache.move_to_end(key)
        return kept[1]

    async def _review(self, key: bytes, *, cacheable: bool) -> Decision:
        try:
            async with self._clock.timeout(self._settings.timeout):
                status = await self._status(key)
        except TimeoutError:
            return self._failed(f"no response within {self._settings.timeout:g} seconds")
        except (WebhookFailed, TransportError) as error:
            return self._failed(str(error))
        decision = _decision(status)
        ttl = self._settings.authorized_ttl if status.get("allowed") else self._settings.unauthorized_ttl
        if cacheable and ttl:
            self._cache[key] = (self._clock.monotonic() + ttl, decision)
            if len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
        return decision

    async def _status(self, spec: bytes) -> Json:
        version = f"authorization.k8s.io/{self._settings.version}"
        review = {"kind": "SubjectAccessReview", "apiVersion": version, "metadata": {}, "spec": msgspec.Raw(spec)}
        body = msgspec.json.encode(review)
        headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
        wait = _FIRST_WAIT
        for attempt in range(_RETRIES + 1):
            async with await self._transport.request(Request("POST", "", headers=headers, body=body)) as answer:
                status, data = answer.status, await answer.read()
            if status not in _RETRIED or attempt == _RETRIES:
                break
            await self._clock.sleep(wait)
            wait *= _FACTOR
        if not 200 <= status <= 206:
            raise WebhookFailed(str(from_response(status, data, verb="POST")))
        try:
            reviewed = msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise WebhookFailed(f"cannot decode response: {error}") from None
        if not isinstance(reviewed, dict) or not isinstance(reviewed.get("status"), dict):
            raise WebhookFailed("response has no status")
        found: Json = reviewed["status"]
        return found

    def _failed(self, why: str) -> Decision:
        _logger.warning("authorization webhook failed webhook=%s error=%s", self._name, why)
        return Decision(allowed=False, denied=self._settings.denies_on_failure, error=why)


def _transport(world: World, configured: Configured) -> Transport:
    from ostinato.client.http.transport import HttpTransport  # noqa: PLC0415 - loads only where it is needed

    assert configured.webhook is not None
    path = configured.webhook.kubeconfig
    try:
        config = in_cluster.config(os.environ) if path is None else Config.load(path=path)
        return HttpTransport(config, world)
    except Exception as error:
        raise ConfigurationError(f"authorization webhook {configured.name}: {error}") from error


def _spec(user: User, attributes: RequestAttributes) -> Json:
    """The spec of a review; empty fields are omitted, as in the API."""
    spec: Json = {}
    if attributes.path is not None:
        spec["nonResourceAttributes"] = _set(path=attributes.path, verb=attributes.verb)
    else:
        fields = [
            {"key": each.field, "operator": "NotIn" if each.negated else "In", "values": [each.value]}
            for each in attributes.field_selector
        ]
        labels = [
            {"key": each.key, "operator": _OPERATORS[each.operator.name], **_set(values=list(each.values))}
            for each in attributes.label_selector
            if each.operator.name in _OPERATORS
        ]
        spec["resourceAttributes"] = _set(
            namespace=attributes.namespace,
            verb=attributes.verb,
            group=attributes.group,
            version=attributes.version,
            resource=attributes.resource,
            subresource=attributes.subresource,
            name=attributes.name,
            fieldSelector=_set(requirements=fields),
            labelSelector=_set(requirements=labels),
        )
    extra = {key: list(values) for key, values in user.extra.items()}
    return spec | _set(user=user.name, groups=list(user.groups), extra=extra, uid=user.uid)


_OPERATORS: Final = {
    "EQUALS": "In",
    "DOUBLE_EQUALS": "In",
    "IN": "In",
    "NOT_EQUALS": "NotIn",
    "NOT_IN": "NotIn",
    "EXISTS": "Exists",
    "DOES_NOT_EXIST": "DoesNotExist",
}


def _complete(spec: Json) -> Json:
    """The spec for match conditions: all string fields are present."""
    made: Json = {"user": "", "groups": [], "uid": "", "extra": {}} | spec
    if "resourceAttributes" in spec:
        parts = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
        made["resourceAttributes"] = dict.fromkeys(parts, "") | spec["resourceAttributes"]
    else:
        made["nonResourceAttributes"] = {"verb": "", "path": ""} | spec["nonResourceAttributes"]
    return made


def _set(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value}


def _length(attributes: RequestAttributes) -> int:
    return sum(
        map(
            len,
            (
                attributes.namespace,
                attributes.verb,
                attributes.group,
                attributes.resource,
                attributes.subresource,
                attributes.name,
            ),
        )
    ) + (len(attributes.path or "") + len(attributes.version))


def _decision(status: Json) -> Decision:
    allowed, denied, reason = bool(status.get("allowed")), bool(status.get("denied")), str(status.get("reason") or "")
    if allowed and denied:
        error = "webhook subject access review returned both allow and deny response"
        return Decision(allowed=False, reason=reason, denied=True, error=error)
    return Decision(allowed=allowed, reason=reason, denied=denied)
