"""Client: reads and writes the objects of an API server.

    async with Client.connect(field_manager="widgets") as client:
        pod = await client.get(Pod, "web-0")
        async for pod in client.list(Pod, labels="app=web"): ...
        async for event in client.watch(Pod, labels="app=web"): ...
        await client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"key": "value"}))

- A kind is a class, or a view for kinds without a class (`ostinato.client.views`).
- An object is identified by a name in the client's namespace, by a name and `namespace=`, or by a key with both: a
  NamespacedName, the request of a reconcile. `list` and `watch` default to all namespaces.
- Writes do not lose fields: `apply` sends and owns only the fields that are set; `update` keeps fields unknown to the
  class; `patch` sends the changes. Each returns the object as stored; the argument is not changed.
- `subresource="status"` reads or writes the subresource only.
- Errors: `APIError` for an error response, `TransportError` without a response, TypeError and ValueError for invalid
  arguments, before a request is sent.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from ostinato.api.accessors import AnyObject, describe, uid
from ostinato.api.errors import NotFound
from ostinato.api.scheme import Scheme
from ostinato.client.discovery.paths import Key, collection_path
from ostinato.client.options import (
    CreateOptions,
    DeletionOptions,
    FieldSelection,
    FieldValidation,
    LabelSelection,
    WriteOptions,
    create_query,
    deletion_body,
    selection_query,
    write_query,
)
from ostinato.client.patching import (
    APPLY,
    Patch,
    check_applicable,
    check_whole,
    difference,
    encoded,
    report_ignored_status,
)
from ostinato.client.reader import Reader
from ostinato.client.requests import Content, Requests, Target, view_like
from ostinato.client.subresources.pods import Pods
from ostinato.client.subresources.scale import Scales
from ostinato.client.subresources.service_accounts import ServiceAccounts
from ostinato.client.transport.backoff import CONFLICTS, Backoff
from ostinato.client.transport.closable import AsyncClosable
from ostinato.client.transport.exchange import Call, NoSuchKind, WarningHandler
from ostinato.client.transport.protocol import Transport
from ostinato.client.transport.retry import retry_on_conflict
from ostinato.client.unreadable import UnreadableObjects
from ostinato.client.views import JSON, Kind, View, view_of
from ostinato.client.writer import Writer
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.client.config.config import Config

T = TypeVar("T")
A = TypeVar("A", bound=AnyObject)


class Client(Reader, Writer, AsyncClosable):
    def __init__(
        self,
        transport: Transport,
        *,
        world: World | None = None,
        scheme: Scheme | None = None,
        namespace: str = "",
        field_manager: str = "",
        field_validation: FieldValidation | None = None,
        warn: WarningHandler | None = None,
        unreadable: UnreadableObjects | None = None,
    ) -> None:
        """
        - `world`: clock and random numbers. Defaults to the real ones.
        - `scheme`: REST mappings of kinds without a class. Defaults to the built-in kinds.
        - `namespace`: of objects without one. Defaults to "": such objects raise ValueError.
        - `field_manager`: field manager of writes; required for `apply`. Defaults to the server's choice.
        - `field_validation`: how servers treat unknown fields. Defaults to the server's choice, `"Warn"`.
        - `warn`: called with the warnings of the server. Defaults to logging each text once.
        - `unreadable`: reports objects that lists and watches skip. Defaults to one of its own.
        """
        super().__init__(Requests(transport, world or World.real(), scheme, namespace, warn, unreadable))
        self.transport = transport
        self.namespace = namespace
        self._defaults: CreateOptions = {}
        if field_manager:
            self._defaults["field_manager"] = field_manager
        if field_validation:
            self._defaults["field_validation"] = field_validation
        self._add_subresources()

    @classmethod
    def connect(
        cls,
        config: Config | None = None,
        *,
        world: World | None = None,
        field_manager: str = "",
        field_validation: FieldValidation | None = None,
    ) -> Self:
        """Return a client over HTTP. `config`: Defaults to `Config.load()`, as kubectl does."""
        from ostinato.client.config.config import Config  # noqa: PLC0415 - not used in process
        from ostinato.client.http.transport import HttpTransport  # noqa: PLC0415

        config = config or Config.load()
        world = world or World.real()
        return cls(
            HttpTransport(config, world),
            world=world,
            namespace=config.namespace,
            field_manager=field_manager,
            field_validation=field_validation,
        )

    def in_namespace(self, namespace: str) -> Self:
        """Return a client for objects without a namespace in this one; it shares the connection.

        With "", such objects raise ValueError.
        """
        scoped = copy.copy(self)
        scoped.namespace = namespace
        scoped._requests = self._requests.in_namespace(namespace)
        scoped._add_subresources()
        return scoped

    def _add_subresources(self) -> None:
        self.pods = Pods(self._requests)
        self.scale = Scales(self._requests)
        self.service_accounts = ServiceAccounts(self._requests)

    @property
    def host(self) -> str:
        """The address of the server, for messages."""
        return self._requests.exchange.transport.host

    @property
    def field_manager(self) -> str:
        """The field manager of writes that do not name one; "" for the server's choice."""
        return self._defaults.get("field_manager", "")

    async def close(self) -> None:
        """Close the transport. Idempotent."""
        await self.transport.close()

    async def create(self, instance: A, **options: Unpack[CreateOptions]) -> A:
        """Create an object. `metadata.generate_name` has the server generate a name. Raises AlreadyExists."""
        check_whole(instance, "create")
        query = create_query({**self._defaults, **options})
        view = view_like(instance)
        info = view.info or await self._requests.resolve(view)
        key = self._requests.key_of(info, instance)
        if info.namespaced and not key.namespace:
            raise ValueError(
                f"{describe(instance)}: namespace is required; set metadata.namespace=, or the namespace of the client"
            )
        call = Call(
            method="POST",
            path=collection_path(info, key.namespace),
            query=query,
            body=encoded(instance),
            timeout=options.get("timeout"),
            info=info,
            name=key.name,
        )
        created: A = view.read(await self._requests.exchange.send(call), info)
        return created

    async def update(self, instance: A, **options: Unpack[WriteOptions]) -> A:
        """Replace an object.

        Raises Conflict if it changed since it was read; without a resourceVersion the update is unconditional.
        """
        check_whole(instance, "update")
        written = await self._write("PUT", instance, options)
        if not options.get("subresource"):
            report_ignored_status(instance, written)
        return written

    async def apply(self, instance: A, *, force: bool = False, **options: Unpack[WriteOptions]) -> A:
        """Server-side apply: set and own the fields of the object, and remove owned fields that it no longer sets.

        - Creates the object if it does not exist.
        - Raises Conflict if another field manager owns a field with another value; `force` takes ownership.
        """
        check_applicable(instance)
        if not options.get("field_manager", self._defaults.get("field_manager")):
            raise ValueError(
                f"{describe(instance)}: apply() requires a field_manager; pass it, or set it on the client"
            )
        return await self._write("PATCH", instance, options, APPLY, [("force", "true")] if force else ())

    async def _patch_changes(self, target: A, original: A | None, options: WriteOptions, *, optimistic_lock: bool) -> A:
        patch = difference(target, original, optimistic_lock=optimistic_lock)
        if not patch.content:
            return target
        view = view_like(target)
        info = view.info or await self._requests.resolve(view)
        where = self._requests.target_of(info, target, options.get("subresource", ""))
        patched: A = view.read(await self._requests.send("PATCH", where, self._content(patch, view, options)), info)
        return patched

    async def _patch_key(
        self, kind: Kind[T], name: Key, namespace: str | None, patch: Patch, options: WriteOptions
    ) -> T:
        view = view_of(kind)
        info = view.info or await self._requests.resolve(view)
        where = self._requests.target(info, name, namespace, options.get("subresource", ""))
        return view.read(await self._requests.send("PATCH", where, self._content(patch, view, options)), info)

    def _content(self, patch: Patch, view: View[Any], options: WriteOptions) -> Content:
        return Content(
            query=write_query({**self._defaults, **options}),
            body=patch.body(),
            content_type=patch.content_type,
            accept=view.accept,
            timeout=options.get("timeout"),
        )

    async def _delete_object(self, target: AnyObject, options: DeletionOptions, *, missing_ok: bool) -> bytes:
        view = view_like(target)
        info = view.info or await self._requests.resolve(view)
        where = self._requests.target_of(info, target)
        return await self._delete(where, {"uid": uid(target), **options}, missing_ok=missing_ok)

    async def _delete_key(
        self, kind: Kind[Any], name: Key, namespace: str | None, options: DeletionOptions, *, missing_ok: bool
    ) -> bytes:
        info = await self._requests.resolve(view_of(kind))
        return await self._delete(self._requests.target(info, name, namespace), options, missing_ok=missing_ok)

    async def _delete(self, where: Target, options: DeletionOptions, *, missing_ok: bool) -> bytes:
        """Return the response: the object, or a Status if it is gone; b"" if it did not exist."""
        content = Content(body=deletion_body(options), timeout=options.get("timeout"))
        try:
            return await self._requests.send("DELETE", where, content)
        except NoSuchKind:
            raise
        except NotFound:
            if not missing_ok:
                raise
            return b""

    async def delete_all_of(
        self,
        kind: Kind[Any],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        **options: Unpack[DeletionOptions],
    ) -> None:
        """Delete the objects of a kind that match the selectors. `namespace`: required for namespaced kinds."""
        info = await self._requests.resolve(view_of(kind))
        if info.namespaced and not namespace:
            raise ValueError(f"{info.gvk.kind}: delete_all_of() requires a namespace; pass namespace=")
        call = Call(
            method="DELETE",
            path=collection_path(info, namespace),
            query=selection_query(labels, fields),
            body=deletion_body(options),
            timeout=options.get("timeout"),
            info=info,
        )
        await self._requests.exchange.send(call)

    async def retry_on_conflict(self, function: Callable[[], Awaitable[T]], backoff: Backoff = CONFLICTS) -> T:
        """Retry `function` on Conflict, with five attempts by default. It must read the object on each attempt."""
        return await retry_on_conflict(self.world, function, backoff)

    async def _write(
        self,
        method: str,
        instance: A,
        options: WriteOptions,
        content_type: str = JSON,
        parameters: Sequence[tuple[str, str]] = (),
    ) -> A:
        query = [*write_query({**self._defaults, **options}), *parameters]
        view = view_like(instance)
        info = view.info or await self._requests.resolve(view)
        target = self._requests.target_of(info, instance, options.get("subresource", ""))
        content = Content(
            query=query,
            body=encoded(instance),
            content_type=content_type,
            timeout=options.get("timeout"),
        )
        written: A = view.read(await self._requests.send(method, target, content), info)
        return written
