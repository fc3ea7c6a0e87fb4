"""DenyServiceExternalIPs: rejects new `externalIPs`, which can intercept traffic (CVE-2020-8554).

Existing addresses of a Service are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class DenyServiceExternalIPs(Plugin):
    covers = resources("services")

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation not in ("CREATE", "UPDATE") or not is_of(context, "", "services"):
            return
        if not set(_addresses(obj)) <= set(_addresses(old)):
            raise forbidden(context, obj, "Use of external IPs is denied by admission control")


def _addresses(service: Json | None) -> list[str]:
    return ((service or {}).get("spec") or {}).get("externalIPs") or []
