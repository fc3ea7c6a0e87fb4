"""Table rows of the discovery.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, age, name_of, some


def _endpoint_slice(obj: Json, now: datetime) -> list[Any]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [name_of(obj), obj.get("addressType", ""), some(ports), some(addresses), age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
}
