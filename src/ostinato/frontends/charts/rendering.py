"""Charts as the reconciler uses them: loaded once, rendered for each release."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.wire import DecodeError, decode_json
from ostinato.cache.client import CachedClient
from ostinato.charts import Capabilities, Chart, ChartError, Engine, Release, Rendering, load_chart, render_chart
from ostinato.charts.metadata import Dependency, wire_name
from ostinato.charts.values.options import merged
from ostinato.charts.values.set_flags import SetError, set_strings
from ostinato.client import NoSuchKind
from ostinato.client.transport.protocol import Request
from ostinato.client.views import Unstructured
from ostinato.frontends.charts.actions.release import Content
from ostinato.frontends.charts.manifests import objects_of
from ostinato.frontends.charts.releases.record import HookRecord
from ostinato.gotemplate.values import Int64
from ostinato.world import World

Json = dict[str, Any]

_LOOKUP: Final = b"lookup"
_KIND: Final = re.compile(r"^kind:[ \t]*[\"']?([A-Z][A-Za-z0-9]*)[\"']?[ \t]*$", re.MULTILINE)
_VERSION: Final = re.compile(r"^apiVersion:[ \t]*[\"']?([a-z0-9./-]+)[\"']?[ \t]*$", re.MULTILINE)


class LoadedChart:
    """A chart directory or archive. Raises `ChartError` if it cannot be loaded."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.chart = load_chart(self.path)
        self._engine: tuple[CachedClient, Engine] | None = None  # of the last client

    @property
    def name(self) -> str:
        return self.chart.name

    @property
    def version(self) -> str:
        return self.chart.metadata.version

    @cached_property
    def digest(self) -> str:
        """Identifies the contents, with those of the charts that it contains."""
        found = blake2b(digest_size=16)
        for path, data in _files(self.chart):
            found.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
            found.update(data)
        found.update(repr(self.record["metadata"]).encode("utf-8", "surrogateescape"))
        found.update(repr(self.chart.values).encode("utf-8", "surrogateescape"))
        return found.hexdigest()

    @cached_property
    def record(self) -> Json:
        """The chart as in a release record."""
        files = [each for each in self.chart.files if not each.name.startswith("charts/")]
        return {
            "metadata": _plain(self.chart.metadata),
            "lock": None,
            "templates": [{"name": each.name, "data": _packed(each.data)} for each in self.chart.templates],
            "values": self.chart.values,
            "schema": None if self.chart.schema is None else _packed(self.chart.schema),
            "files": [{"name": each.name, "data": _packed(each.data)} for each in files],
        }

    @property
    def schema(self) -> Any:
        """The parsed values.schema.json; None without one."""
        try:
            return None if self.chart.schema is None else decode_json(self.chart.schema)
        except DecodeError as error:
            raise ChartError(f"{self.path}: values.schema.json: {error}") from None

    @cached_property
    def uses_lookup(self) -> bool:
        return any(_LOOKUP in data for _, data in _files(self.chart))

    def defaults(self, world: World) -> list[Json]:
        """Return the objects and hooks that the default values give, to derive permissions. Raises `ChartError`."""
        rendering = render_chart(self.chart, {}, Engine(world), Release("release-name", "default"), Capabilities())
        texts = [each.content for each in (*rendering.manifests, *rendering.hooks)]
        return [each for text in texts for each in objects_of(text)]

    def declared(self) -> Iterator[tuple[str, str]]:
        """Return apiVersion and kind of the documents in the templates as they are written; "" for what is computed.

        Conditions are not evaluated: kinds that the default values switch off are among them.
        """
        for path, data in _files(self.chart):
            if "/templates/" not in path:
                continue
            for document in data.decode("utf-8", "replace").split("\n---"):
                kind, version = _KIND.search(document), _VERSION.search(document)
                if kind is not None:
                    yield "" if version is None else version[1], kind[1]

    async def render(self, instance: Json, values: Json, revision: int, client: CachedClient) -> Content:
        """Render a revision of the release of a custom resource. Raises `ChartError`."""
        release = Release(access.name(instance), access.namespace(instance), revision, revision > 1)
        capabilities = await capabilities_of(client)
        render = partial(self._rendered, values, release, capabilities, client)
        rendering: Rendering = await client.world.executor.run(render)  # it may take long, and call `lookup`
        return Content(
            chart=self.record,
            digest=self.digest,
            config=values,
            manifest="".join(f"---\n# Source: {each.path}\n{each.content}\n" for each in rendering.manifests),
            hooks=[
                HookRecord(
                    name=each.name,
                    kind=each.kind,
                    path=each.path,
                    manifest=each.content,
                    events=list(each.events),
                    weight=each.weight,
                    delete_policies=list(each.delete_policies),
                )
                for each in rendering.hooks
            ],
            notes=rendering.notes,
            definitions=[one for path, text in rendering.crds for one in _definitions(path, text)],
        )

    def _rendered(self, values: Json, release: Release, capabilities: Capabilities, client: CachedClient) -> Rendering:
        known, engine = self._engine or (None, None)
        if known is not client or engine is None:
            engine = Engine(client.world, lookup=partial(_looked_up, client) if self.uses_lookup else None)
            self._engine = client, engine  # which keeps the parsed templates
        return render_chart(self.chart, typed(values), engine, release, capabilities)


def values_of(spec: Mapping[str, Any], overrides: Mapping[str, str]) -> Json:
    """Return the spec with overrides on top, which are as in `helm --set-string`. Raises `ChartError`."""
    over: Json = {}
    for path, value in overrides.items():
        try:
            set_strings(f"{path}={value}", over)
        except SetError as error:
            raise ChartError(f"override value {path!r}: {error}") from None
    return merged(dict(spec), over)


def typed(value: Any) -> Any:
    """Return a copy of JSON with integers as Go's int64, as which templates see those of a custom resource."""
    if isinstance(value, dict):
        return {name: typed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    return Int64(value) if isinstance(value, int) and not isinstance(value, bool) else value


async def capabilities_of(client: CachedClient) -> Capabilities:
    """Return the version and the kinds of the server."""
    async with await client.live.transport.request(Request("GET", "/version")) as response:
        version = str(decode_json(await response.read())["gitVersion"])
    catalogue = await client.live.mapper.catalogue()
    found: list[str] = []
    for each in catalogue.versions:
        found.append(str(each.version))
        found += (f"{each.version}/{resource.info.gvk.kind}" for resource in each.resources)
    return Capabilities(version, tuple(found))


def _looked_up(client: CachedClient, api_version: str, kind: str, namespace: str, name: str) -> Json:
    """Read an object or a list for a template; empty if it does not exist."""
    return client.world.executor.block_on(_read(client, GroupVersionKind.of(api_version, kind), namespace, name))


async def _read(client: CachedClient, gvk: GroupVersionKind, namespace: str, name: str) -> Json:
    view = Unstructured(gvk)
    try:
        if name:
            found = await client.live.get(view, name, namespace=namespace, missing=None)
            return typed(found) if found is not None else {}
        items = list(await client.live.list(view, namespace=namespace))
    except NoSuchKind:
        return {}
    except APIError as error:
        raise ChartError(f"lookup of {gvk.kind} {namespace}/{name}: {error}") from None
    listed = {"apiVersion": gvk.api_version, "kind": f"{gvk.kind}List", "metadata": {}, "items": items}
    return typed(listed) if items else {}


def _files(chart: Chart) -> Iterator[tuple[str, bytes]]:
    for each in sorted((*chart.templates, *chart.files), key=lambda one: one.name):
        yield f"{chart.full_path}/{each.name}", each.data
    if chart.schema is not None:
        yield f"{chart.full_path}/values.schema.json", chart.schema
    for dependency in sorted(chart.dependencies, key=lambda one: one.name):
        yield f"{dependency.full_path}", repr((dependency.metadata, dependency.values)).encode("utf-8", "replace")
        yield from _files(dependency)


def _plain(metadata: Any) -> Json:
    """Return metadata as JSON, without empty fields."""
    found = {}
    for each in fields(metadata):
        value = getattr(metadata, each.name)
        if value in ("", False, [], {}, None) or each.name == "enabled":
            continue
        is_nested = isinstance(value, list) and value and isinstance(value[0], Dependency)
        found[wire_name(each.name)] = [_plain(one) for one in value] if is_nested else value
    return found


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _definitions(path: str, text: str) -> list[Json]:
    try:
        return objects_of(text)
    except ValueError as error:
        raise ChartError(f"{path}: {error}") from None
