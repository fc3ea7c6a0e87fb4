"""Service environment variables, such as `NAME_SERVICE_HOST`."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.http.hosts import bracketed
from ostinato.kinds.core_v1 import Service


def service_variables(services: Iterable[Service]) -> dict[str, str]:
    """Return the variables of all Services with a cluster IP."""
    found: dict[str, str] = {}
    for service in services:
        address, ports = service.spec.cluster_ip or "", service.spec.ports
        if address in ("", "None") or not ports:
            continue
        host = bracketed(address)
        prefix = service.metadata.name.upper().replace("-", "_")
        found[f"{prefix}_SERVICE_HOST"] = address
        found[f"{prefix}_SERVICE_PORT"] = str(ports[0].port)
        for port in ports:
            if port.name:
                found[f"{prefix}_SERVICE_PORT_{port.name.upper().replace('-', '_')}"] = str(port.port)
        first = ports[0]
        found[f"{prefix}_PORT"] = f"{(first.protocol or 'TCP').lower()}://{host}:{first.port}"
        for port in ports:
            protocol = port.protocol or "TCP"
            each = f"{prefix}_PORT_{port.port}_{protocol}"
            found[each] = f"{protocol.lower()}://{host}:{port.port}"
            found[f"{each}_PROTO"] = protocol.lower()
            found[f"{each}_PORT"] = str(port.port)
            found[f"{each}_ADDR"] = address
    return found
