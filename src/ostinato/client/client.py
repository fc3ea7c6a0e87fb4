"""Client: objects of an API server, read and written from Python.

    async with Client.connect(field_manager="widgets") as client:
        pod = await client.get(Pod, "web-0")
        async for pod in client.list(Pod, labels="app=web"): ...
        async for event in client.watch(Pod, labels="app=web"): ...
        await client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"key": "value"}))

- Kinds are classes, or views of what has no class here (`ostinato.client.views`).
- An object is named by a name in the client's namespace, by name and `namespace=`, or by anything that has both: a
  NamespacedName, a request of a controller. `list` and `watch` are about all namespaces unless one is named.
- Writes lose nothing: `apply` sends and owns just the fields that the object sets; `update` keeps what its class does
  not know; `patch` sends what has changed. Each returns the object as the server has it then; what it was given stays.
- `subresource="status"` reads or writes that part alone.
- What a server refuses is an `APIError`, no answer a `TransportError`. Wrong arguments are refused before all that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from ostinato.api.access import AnyObject, describe, uid
from ostinato.api.errors import NotFound
from ostinato.api.scheme import Scheme
from ostinato.client.arguments import check_object, summarize
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
from ostinato.client.patching import APPLY, Patch, check_applicable, check_whole, difference, encoded
from ostinato.client.reader import Reader
from ostinato.client.requests import Content, Requests, view_like
from ostinato.client.subresources.pods import Pods
from ostinato.client.subresources.scale import Scales
from ostinato.client.subresources.service_accounts import ServiceAccounts
from ostinato.client.transport.backoff import CONFLICTS, Backoff
from ostinato.client.transport.closable import AsyncClosable
from ostinato.client.transport.exchange import Call, NoSuchKind, WarningHandler
from ostinato.client.transport.protocol import Transport
from ostinato.client.transport.retry import retry_on_conflict
from ostinato.client.views import JSON, Kind, view_of
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.client.config.config import Config

T = TypeVar("T")
A = TypeVar("A", bound=AnyObject)


class Client(Reader, AsyncClosable):
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
    ) -> None:
        """
        - `scheme`: knows the resources of kinds that are asked for without a class. Defaults to the built-in kinds.
        - `namespace`: of objects that name none. Defaults to none: they are refused.
        - `field_manager`: who owns what this client writes; `apply` needs one. Defaults to the server's choice.
        - `field_validation`: what servers do about unknown fields. Defaults to their choice, which is to warn.
        - `warn`: told what servers warn of. Defaults to the log, each text once.
        """
        super().__init__(Requests(transport, world or World.real(), scheme, namespace, warn))
        self.transport = transport
        self.namespace = namespace
        self._defaults: CreateOptions = {}
        if field_manager:
            self._defaults["field_manager"] = field_manager
        if field_validation:
            self._defaults["field_validation"] = field_validation
        self.pods = Pods(self._requests)
        self.scale = Scales(self._requests)
        self.service_accounts = ServiceAccounts(self._requests)

    @classmethod
    def connect(
        cls,
        config: Config | None = None,
        *,
        world: World | None = None,
        field_manager: str = "",
        field_validation: FieldValidation | None = None,
    ) -> Self:
        """A client over HTTP. Defaults to the server that `Config.load()` finds, as kubectl does."""
        from ostinato.client.config.config import Config  # noqa: PLC0415 - a client in one process with its server needs none
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

    async def close(self) -> None:
        """Close the transport. Harmless when it is closed."""
        await self.transport.close()

    async def create(self, instance: A, **options: Unpack[CreateOptions]) -> A:
        """A new object; `metadata.generate_name` lets the server find a name. AlreadyExists if there is one."""
        check_whole(instance, "create")
        query = create_query({**self._defaults, **options})
        view = view_like(instance)
        info = view.info or await self._requests.resolve(view)
        key = self._requests.key_of(info, instance)
        if info.namespaced and not key.namespace:
            raise ValueError(f"{describe(instance)}: a namespace is needed; give it, or a client that has one")
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
        """Replace an object. Conflict if it has changed since it was read; without a resourceVersion, nobody asks."""
        check_whole(instance, "update")
        return await self._write("PUT", instance, options)

    async def apply(self, instance: A, *, force: bool = False, **options: Unpack[WriteOptions]) -> A:
        """Set the fields that the object sets, own them, and give up those that were owned before: server-side apply.

        Creates the object if there is none. Conflict if others own a field and set it otherwise; `force` takes it.
        """
        check_applicable(instance)
        if not options.get("field_manager", self._defaults.get("field_manager")):
            raise ValueError(f"{describe(instance)}: apply needs a field_manager, here or in the client")
        return await self._write("PATCH", instance, options, APPLY, [("force", "true")] if force else ())

    @overload
    async def patch(
        self, target: A, /, *, original: A | None = None, optimistic_lock: bool = False, **options: Unpack[WriteOptions]
    ) -> A: ...
    @overload
    async def patch(
        self,
        target: Kind[T],
        name: Key,
        patch: Patch,
        /,
        *,
        namespace: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> T: ...
    async def patch(
        self,
        target: Any,
        name: Key = "",
        patch: Patch | None = None,
        /,
        *,
        namespace: str | None = None,
        original: Any = None,
        optimistic_lock: bool = False,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """Change an object: by a patch, or, given the object itself, by what has changed in it since it was read.

        `original` is the object as it was read, for dicts, which do not remember it. `optimistic_lock` makes it a
        Conflict if anybody has written since. If nothing has changed, nothing is sent, and the same object returned.
        """
        query = write_query({**self._defaults, **options})
        subresource = options.get("subresource", "")
        if patch is not None:
            if not isinstance(patch, Patch):
                raise TypeError(f"{summarize(patch)} is no patch: say which kind it is, e.g. MergePatch({{...}})")
            view = view_of(target)
            info = view.info or await self._requests.resolve(view)
            where = self._requests.target(info, name, namespace, subresource)
        else:
            check_object(target, "patch")
            patch = difference(target, original, optimistic_lock=optimistic_lock)
            if not patch.content:
                return target
            view = view_like(target)
            info = view.info or await self._requests.resolve(view)
            where = self._requests.target_of(info, target, subresource)
        content = Content(
            query=query,
            body=patch.body(),
            content_type=patch.content_type,
            accept=view.accept,
            timeout=options.get("timeout"),
        )
        return view.read(await self._requests.send("PATCH", where, content), info)

    @overload
    async def delete(
        self, target: AnyObject, /, *, missing_ok: bool = False, **options: Unpack[DeletionOptions]
    ) -> None: ...
    @overload
    async def delete(
        self,
        target: Kind[Any],
        name: Key,
        /,
        *,
        namespace: str | None = None,
        missing_ok: bool = False,
        **options: Unpack[DeletionOptions],
    ) -> None: ...
    async def delete(
        self,
        target: Any,
        name: Key | None = None,
        /,
        *,
        namespace: str | None = None,
        missing_ok: bool = False,
        **options: Unpack[DeletionOptions],
    ) -> None:
        """Delete an object, or, if it has finalizers, have it deleted. `missing_ok`: be content if there is none.

        An object that was read is deleted only if it is still the same one, by its uid: not one that has been made
        under its name in the meantime.
        """
        if name is None:
            check_object(target, "delete")
            view = view_like(target)
            info = view.info or await self._requests.resolve(view)
            where = self._requests.target_of(info, target)
            options = {"uid": uid(target), **options}
        else:
            info = await self._requests.resolve(view_of(target))
            where = self._requests.target(info, name, namespace)
        content = Content(body=deletion_body(options), timeout=options.get("timeout"))
        try:
            await self._requests.send("DELETE", where, content)
        except NoSuchKind:
            raise
        except NotFound:
            if not missing_ok:
                raise

    async def delete_all_of(
        self,
        kind: Kind[Any],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        **options: Unpack[DeletionOptions],
    ) -> None:
        """Delete the objects of a kind that match. One namespace at a time: it must be named, if the kind has any."""
        info = await self._requests.resolve(view_of(kind))
        if info.namespaced and not namespace:
            raise ValueError(f"{info.gvk.kind}: name the namespace in which all are to be deleted")
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
        """Call `function` until no other writer is faster, five times at most. It must read the object each time."""
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
