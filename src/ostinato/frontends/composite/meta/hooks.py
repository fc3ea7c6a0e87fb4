"""HTTP hooks of a CompositeController or DecoratorController as a decider.

- finalize is called for a parent that is being deleted or no longer selected, if it is defined; sync otherwise.
- The rules of customize are kept per generation of the parent, for 20 minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

from ostinato.api import accessors as access
from ostinato.client.config.error import ConfigError
from ostinato.frontends.composite.meta.contract import (
    Form,
    RelatedRule,
    customize_document,
    parse_customize,
    parse_sync,
    sync_document,
)
from ostinato.frontends.composite.meta.definitions import CompositeHooks, DecoratorHooks, EndpointConfig, Hook
from ostinato.frontends.composite.meta.endpoints import Endpoints
from ostinato.frontends.kernel.sync import DeciderError, Json, SyncRequest, SyncResult
from ostinato.frontends.kernel.transport.http import Endpoint, EtagCache, HookError, HttpHook, TooManyRequests
from ostinato.world import World

_KEPT: Final = 20 * 60.0  # seconds that the rules of a parent are used
_MAX_KEPT: Final = 10_000  # parents


class HookClient:
    """The client of one hook. Its endpoint is resolved on the first call, and again after a failed one."""

    def __init__(
        self, name: str, hook: Hook, configs: Sequence[EndpointConfig], endpoints: Endpoints, world: World
    ) -> None:
        if hook.webhook is None:
            raise DeciderError(f"hooks.{name}: webhook is missing")
        self.version = hook.version
        mode = hook.webhook.response_unmarshall_mode
        self.strict = hook.version == "v2" if mode is None else mode == "strict"
        self._name = name
        self._webhook = hook.webhook
        self._configs = configs
        self._endpoints = endpoints
        self._world = world
        etag = hook.webhook.etag
        self._etags = None
        if etag is not None and etag.enabled:
            timeout = etag.cache_timeout_seconds
            self._etags = EtagCache(world.clock, float(timeout) if timeout else None)
        self._endpoint: Endpoint | None = None
        self._client: HttpHook | None = None
        self._failed = False  # the last call

    async def post(self, document: bytes, key: Hashable) -> bytes:
        """Post a document. Raises DeciderError."""
        try:
            client = self._client
            if client is None or self._failed:
                client = await self._connected()
            answer = await client.post(document, key)
        except TooManyRequests as error:
            raise Busy(f"{self._name} hook: {error}", retry_after=error.delay) from None
        except (HookError, ConfigError) as error:
            self._failed = True
            raise DeciderError(f"{self._name} hook: {error}") from None
        self._failed = False
        return answer

    async def _connected(self) -> HttpHook:
        """Return the client of the current endpoint: its address or credentials may have changed."""
        endpoint = await self._endpoints.of(self._webhook, self._configs)
        if self._client is not None and endpoint == self._endpoint:
            return self._client
        client = HttpHook(endpoint, self._world, self._etags)
        await self.close()
        self._endpoint, self._client = endpoint, client
        return client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


class Busy(DeciderError):  # noqa: N818 - not a failure
    """The hook answered 429: not a failure, but called again later."""


class HttpHooks:
    """The hooks of one controller."""

    def __init__(
        self,
        form: Form,
        controller: Json,
        hooks: CompositeHooks | DecoratorHooks | None,
        configs: Sequence[EndpointConfig],
        endpoints: Endpoints,
        world: World,
    ) -> None:
        """Raises DeciderError if a hook is not usable. `controller`: the object as it is sent to the hooks."""
        self._form: Form = form
        self._controller = controller
        self._world = world

        def client(name: str, hook: Hook | None) -> HookClient | None:
            return None if hook is None else HookClient(name, hook, configs, endpoints, world)

        if hooks is None or hooks.sync is None:
            raise DeciderError("spec.hooks.sync: is missing; a controller needs a sync hook")
        self._sync = client("sync", hooks.sync)
        self._finalize = client("finalize", hooks.finalize)
        self._customize = client("customize", hooks.customize)
        self._rules: OrderedDict[Hashable, tuple[float, list[RelatedRule]]] = OrderedDict()

    @property
    def finalizes(self) -> bool:
        return self._finalize is not None

    @property
    def customizes(self) -> bool:
        return self._customize is not None

    @property
    def sees_all_namespaces(self) -> bool:
        """Whether a namespaced parent may see related objects of other namespaces."""
        return self._customize is not None and self._customize.version == "v2"

    async def decide(self, request: SyncRequest) -> SyncResult:
        """The decider. Raises DeciderError."""
        hook = self._finalize if request.finalizing and self._finalize is not None else self._sync
        assert hook is not None
        parent = request.parent or {}
        document = sync_document(self._form, hook.version, self._controller, request)
        body = await hook.post(document, _key(parent))
        return parse_sync(self._form, body, parent, strict=hook.strict)

    async def rules(self, parent: Json) -> list[RelatedRule]:
        """Return the rules for the related objects of a parent. Raises DeciderError."""
        hook = self._customize
        if hook is None:
            return []
        now, key = self._world.clock.monotonic(), (access.uid(parent), access.generation(parent))
        known = self._rules.get(key)
        if known is not None and now < known[0]:
            return known[1]
        body = await hook.post(customize_document(self._controller, parent), _key(parent))
        found = parse_customize(body, strict=hook.strict)
        self._rules[key] = (now + _KEPT, found)
        self._rules.move_to_end(key)
        if len(self._rules) > _MAX_KEPT:
            self._rules.popitem(last=False)
        return found

    async def close(self) -> None:
        for each in (self._sync, self._finalize, self._customize):
            if each is not None:
                await each.close()


def _key(parent: Json) -> Hashable:
    return (parent.get("kind"), access.key(parent))
