"""Availability of an APIService: the Available condition, with the reasons and messages of kube-aggregator.

A Service, its port, a ready endpoint, and an answer of the extension server to a request for its resources are
required. The answer is awaited for five seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.server.aggregation.api_services import AVAILABLE, ApiService, ApiServices, available_condition
from ostinato.server.aggregation.fetch import Fetcher, FetchError, FetchOptions
from ostinato.server.aggregation.front_proxy import AGGREGATOR
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry
from ostinato.server.verbs import write
from ostinato.world import Clock

SERVICE_LABEL: Final = "kubernetes.io/service-name"
_CHECK: Final = FetchOptions(user=AGGREGATOR)
_MANAGER: Final = "kube-apiserver"


class Verdict(NamedTuple):
    status: str
    reason: str
    message: str

    @property
    def is_retried(self) -> bool:
        """Whether nothing in the API changes when the reason ends."""
        return self.reason == "FailedDiscoveryCheck"


LOCAL: Final = Verdict("True", "Local", "Local APIServices are always available")
_PASSED: Final = Verdict("True", "Passed", "all checks passed")


class Availability:
    """Checks APIServices and writes their condition."""

    def __init__(self, registry: Registry, index: Index, services: ApiServices, fetcher: Fetcher, clock: Clock) -> None:
        self._services = _resource(registry, "", "services")
        self._slices = _resource(registry, "discovery.k8s.io", "endpointslices")
        self._index = index
        self._api_services = services
        self._fetcher = fetcher
        self._clock = clock

    async def reconcile(self, service: ApiService) -> Verdict:
        """Check an APIService and write the condition if it has changed."""
        verdict = await self.check(service)
        await self._write(service, verdict)
        return verdict

    async def check(self, service: ApiService) -> Verdict:
        if service.service is None:
            return LOCAL
        namespace, name = service.service
        about = f"service/{name} in {quote(namespace)}"
        assert self._services.collection is not None
        entry = self._services.collection.entries.get(self._services.key(namespace, name))
        if entry is None:
            return Verdict("False", "ServiceNotFound", f"{about} is not present")
        spec = msgspec.json.decode(entry.data).get("spec") or {}
        if spec.get("type", "ClusterIP") == "ClusterIP":
            port = next((each for each in spec.get("ports") or () if each.get("port") == service.port), None)
            if port is None:
                return Verdict("False", "ServicePortError", f"{about} is not listening on port {service.port}")
            port_name = port.get("name", "")
            slices = list(self._slices_of(namespace, name))
            if not slices:
                return Verdict("False", "EndpointsNotFound", f"cannot find endpointslices for {about}")
            if not any(_has_endpoint(each, port_name) for each in slices):
                message = f"endpointslices for {about} have no addresses with port name {quote(port_name)}"
                return Verdict("False", "MissingEndpoints", message)
        return await self._discover(service)

    def _slices_of(self, namespace: str, name: str) -> Iterator[Json]:
        assert self._slices.collection is not None
        for entry in self._slices.collection.select(f"{namespace}/"):
            if entry.labels.get(SERVICE_LABEL) == name:
                yield msgspec.json.decode(entry.data)

    async def _discover(self, service: ApiService) -> Verdict:
        """Request what every extension server must serve, whatever it authorizes."""
        try:
            found = await self._fetcher.get(service, service.path, _CHECK)
        except FetchError as error:
            message = f"failing or missing response from {error.url}: {error}" if error.url else str(error)
            return Verdict("False", "FailedDiscoveryCheck", message)
        if 200 <= found.status < 300:
            return _PASSED
        message = f"failing or missing response from {found.url}: bad status from {found.url}: {found.status}"
        return Verdict("False", "FailedDiscoveryCheck", message)

    async def _write(self, service: ApiService, verdict: Verdict) -> None:
        """Write the condition unless it is up to date, or the APIService was replaced meanwhile."""
        entry = self._api_services.entry(service.name)
        if entry is None or entry.uid != service.uid:
            return
        resource = self._api_services.resource
        obj = resource.object(entry.data)
        before = available_condition(obj)
        if before is not None and all(before.get(field) == getattr(verdict, field) for field in Verdict._fields):
            return
        now = write.now(self._clock)
        since = before["lastTransitionTime"] if before is not None and before.get("status") == verdict.status else now
        new = {"type": AVAILABLE, "status": verdict.status, "lastTransitionTime": since}
        new |= {"reason": verdict.reason, "message": verdict.message}
        others = [each for each in (obj.get("status") or {}).get("conditions") or () if each.get("type") != AVAILABLE]
        status = {**(obj.get("status") or {}), "conditions": [*others, new]}
        changed = resource.managers["status"].update(obj, {**obj, "status": status}, _MANAGER, now)
        await self._put(changed, entry)

    async def _put(self, changed: Json, entry: Entry) -> None:
        with suppress(Conflict):  # the other write has it checked again
            await write.put_object(self._index, self._api_services.resource, changed, entry)


def _has_endpoint(found: Json, port_name: str) -> bool:
    ready = any((each.get("conditions") or {}).get("ready") is not False for each in found.get("endpoints") or ())
    return ready and any(
        (each.get("name") or "") == port_name and each.get("port") is not None for each in found.get("ports") or ()
    )


def _resource(registry: Registry, group: str, name: str) -> Resource:
    found = registry.get(group, "v1", name)
    assert found is not None
    return found
