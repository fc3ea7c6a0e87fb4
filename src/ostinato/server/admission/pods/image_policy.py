"""ImagePolicyWebhook: a backend decides whether the images of a Pod may run.

- Called for created and updated Pods, and for ephemeral containers (CVE-2023-2727).
- Responses are cached: `allowTTL` for allowed, `denyTTL` for denied.
- Failed calls are retried up to five times with growing `retryBackoff`. If all fail, `defaultAllow` decides; the audit
  event of an admitted Pod is annotated `failed-open`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden
from ostinato.server.resources.core.pods.spec.defaults import containers_of
from ostinato.server.resources.strategy import Json
from ostinato.server.webhooks.review import decoded, field
from ostinato.server.webhooks.target import CallError, Target
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

Call = Callable[[Target, bytes, int], Awaitable[bytes]]

_KIND = GroupVersionKind("imagepolicy.k8s.io", "v1alpha1", "ImageReview")
_AUDIT = "imagepolicywebhook.image-policy.k8s.io/"
_SECONDS = 30  # timeout of one call
_ATTEMPTS, _FACTOR, _JITTER = 5, 1.5, 0.2
_RETRIED = frozenset({429, 500, 504})  # retried status codes
_CACHE_SIZE = 1024  # entries
_logger = logging.getLogger(__name__)


class ImagePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds; a TTL of 0 disables caching."""

    backend: Target
    allow_ttl: float
    deny_ttl: float
    retry_backoff: float
    default_allow: bool


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool
    reason: str
    annotations: dict[str, str]


class ImagePolicyWebhook(Plugin):
    covers = resources("pods")

    def __init__(self, world: World, policy: ImagePolicy, call: Call) -> None:
        self._world = world
        self._policy = policy
        self._call = call
        self._kept: OrderedDict[bytes, tuple[float, _Verdict]] = OrderedDict()  # by review: expiry, response

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        subresource = context.route.subresource
        if operation not in ("CREATE", "UPDATE") or subresource not in ("", "ephemeralcontainers"):
            return
        assert obj is not None
        review = _review(context, obj)
        try:
            verdict = await self._verdict(review)
        except CallError as error:
            self._failed(context, obj, error)
            return
        for name, value in verdict.annotations.items():
            context.request.annotate(_AUDIT + name, value)
        if not verdict.allowed:
            why = "one or more images rejected by webhook backend"
            if verdict.reason:
                why = f"image policy webhook backend denied one or more images: {verdict.reason}"
            raise forbidden(context, obj, why)

    def _failed(self, context: Context, pod: Json, error: CallError) -> None:
        if not self._policy.default_allow:
            raise forbidden(context, pod, error) from None
        _logger.warning("image policy backend failed, pod admitted by defaultAllow error=%s", error)
        context.request.annotate(_AUDIT + "failed-open", "true")

    async def _verdict(self, review: bytes) -> _Verdict:
        now = self._world.clock.monotonic()
        until, kept = self._kept.get(review, (0.0, None))
        if kept is not None and now < until:
            self._kept.move_to_end(review)
            return kept
        verdict = _read(await self._asked(review))
        seconds = self._policy.allow_ttl if verdict.allowed else self._policy.deny_ttl
        if seconds > 0:
            self._kept[review] = (self._world.clock.monotonic() + seconds, verdict)
            self._kept.move_to_end(review)
            if len(self._kept) > _CACHE_SIZE:
                self._kept.popitem(last=False)
        return verdict

    async def _asked(self, review: bytes) -> bytes:
        wait = self._policy.retry_backoff
        for attempt in range(_ATTEMPTS):
            try:
                return await self._call(self._policy.backend, review, _SECONDS)
            except CallError as error:
                if attempt == _ATTEMPTS - 1 or not _is_transient(error):
                    raise
            await self._world.clock.sleep(self._world.rng.jitter(wait, _JITTER))
            wait *= _FACTOR
        raise AssertionError("unreachable")


def _is_transient(error: CallError) -> bool:
    status = getattr(error, "status", 0)
    return status in _RETRIED or "connection reset" in str(error)


def _review(context: Context, pod: Json) -> bytes:
    """The ImageReview; also the cache key."""
    kinds = ("ephemeralContainers",) if context.route.subresource else ("containers", "initContainers")
    annotations = pod["metadata"].get("annotations") or {}
    spec: Json = {
        "containers": [{"image": container.get("image", "")} for container in containers_of(pod["spec"], *kinds)],
        "annotations": {key: value for key, value in annotations.items() if ".image-policy.k8s.io/" in key},
        "namespace": context.route.namespace,
    }
    review = {
        "kind": _KIND.kind,
        "apiVersion": _KIND.api_version,
        "metadata": {},
        "spec": {name: value for name, value in spec.items() if value},
        "status": {"allowed": False},
    }
    return msgspec.json.encode(review, order="sorted")


def _read(data: bytes) -> _Verdict:
    status = field(decoded(data, _KIND), "status", dict, "ImageReview") or {}
    annotations = field(status, "auditAnnotations", dict, "ImageReviewStatus.status", "map[string]string") or {}
    return _Verdict(
        bool(field(status, "allowed", bool, "ImageReviewStatus.status")),
        field(status, "reason", str, "ImageReviewStatus.status") or "",
        {str(key): str(value) for key, value in annotations.items()},
    )
