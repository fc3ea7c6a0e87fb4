"""Reader: the read operations of a client: get, list, watch and wait. `Client` adds the writes."""

from __future__ import annotations

from typing import Any, Final, TypeVar, Unpack, cast, overload

from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import Object
from ostinato.client.collection import Selection
from ostinato.client.discovery.mapping import Mapper
from ostinato.client.discovery.paths import Key
from ostinato.client.list_watch import ListOptions, ListWatch
from ostinato.client.listing import PAGE_SIZE, Listing
from ostinato.client.options import FieldSelection, LabelSelection, ReadOptions, read_query
from ostinato.client.requests import Content, Requests
from ostinato.client.transport.exchange import NoSuchKind
from ostinato.client.views import Kind, MetadataOf, View, view_of
from ostinato.client.waiting import Condition, Waiting
from ostinato.client.watch import Watch

T = TypeVar("T")
D = TypeVar("D")

_RAISE: Final[Any] = object()  # the default of `missing`


class Reader:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self.world = requests.world
        self.unreadable = requests.unreadable  # reports objects that lists and watches skip

    @property
    def mapper(self) -> Mapper:
        """REST mapping: the kinds of the server and their resources."""
        return self._requests.mapper

    @overload
    async def get(self, kind: Kind[T], name: Key, **options: Unpack[ReadOptions]) -> T: ...
    @overload
    async def get(self, kind: Kind[T], name: Key, *, missing: D, **options: Unpack[ReadOptions]) -> T | D: ...
    async def get(self, kind: Kind[T], name: Key, *, missing: Any = _RAISE, **options: Unpack[ReadOptions]) -> Any:
        """Read an object.

        `missing`: returned if the object does not exist. Defaults to raising NotFound. A kind that does not exist
        always raises `NoSuchKind`.
        """
        query = read_query(options)
        view = view_of(kind)
        info = view.info or await self._requests.resolve(view)
        target = self._requests.target(info, name, options.get("namespace"), options.get("subresource", ""))
        try:
            data = await self._requests.send(
                "GET", target, Content(query=query, accept=view.accept, timeout=options.get("timeout"))
            )
        except NoSuchKind:
            raise
        except NotFound:
            if missing is _RAISE:
                raise
            return missing
        return view.read(data, info)

    def list(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        page_size: int = PAGE_SIZE,
        resource_version: str = "",
        resource_version_match: str = "",
        strict: bool = False,
    ) -> Listing[T]:
        """List the objects of a kind: `async for pod in client.list(Pod)`, or `pods = await client.list(Pod)`.

        - `namespace`: Defaults to all namespaces.
        - `page_size`: objects per request, 0 for no paging. Defaults to 500.
        - `strict`: raise `ObjectError` for an object that cannot be decoded. Defaults to False: it is skipped, logged
          and counted (`ostinato.client.unreadable`).
        """
        view = view_of(kind)
        options = ListOptions(
            limit=page_size, resource_version=resource_version, resource_version_match=resource_version_match
        )
        collection = self._requests.collection(view, Selection(namespace, labels, fields))
        return Listing(collection, view, options, None if strict else self.unreadable)

    def watch(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        since: str | None = None,
        strict: bool = False,
    ) -> Watch[T]:
        """Watch the objects of a kind; see `ostinato.client.watch`.

        - `namespace`: Defaults to all namespaces.
        - `since`: the resourceVersion to begin after. Defaults to beginning with the existing objects.
        - `strict`: raise `ObjectError` for an object that cannot be decoded. Defaults to False, as in `list`.
        """
        view = view_of(kind)
        collection = self._requests.collection(view, Selection(namespace, labels, fields))
        return Watch(collection, view, self.world, since=since, unreadable=None if strict else self.unreadable)

    def list_watch(
        self,
        kind: type[Object] | View[Any] | GroupVersionKind,
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        metadata_only: bool = False,
    ) -> ListWatch:
        """Return the source of a reflector; see `ostinato.client.list_watch`."""
        view: View[Any] = MetadataOf(kind) if metadata_only else view_of(kind)
        return self._requests.collection(view, Selection(namespace, labels, fields))

    async def wait_for(
        self,
        kind: Kind[T],
        name: Key,
        condition: Condition[T],
        *,
        namespace: str | None = None,
        timeout: float | None,  # noqa: ASYNC109 - the error names the condition
    ) -> T | None:
        """Wait until a condition of an object is met, and return the object.

        - `condition`: the type of a status condition that has to be "True" (`"Available"`), or a predicate, which is
          called with None while the object does not exist.
        - `timeout`: seconds after which `WaitTimedOut` is raised; None is no limit.
        """
        view = view_of(kind)
        info = view.info or await self._requests.resolve(view)
        found = self._requests.target(info, name, namespace).key
        selection = Selection(found.namespace, fields={"metadata.name": found.name})
        waiting = Waiting(self._requests.collection(view, selection), view, self.world, condition)
        return cast("T | None", await waiting.run(found, timeout))
