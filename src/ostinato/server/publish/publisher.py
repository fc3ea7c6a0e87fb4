"""The paths that name no resource, and who answers them."""

from __future__ import annotations

import msgspec

from ostinato.api.errors import Forbidden, MethodNotAllowed
from ostinato.api.gvk import GroupResource
from ostinato.api.status import Status, StatusDetails
from ostinato.server.request import Request, Response, User, text_response
from ostinato.server.resources.registry import Registry

_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")


class Publisher:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def answer(self, request: Request, user: User) -> Response:
        path = request.path.rstrip("/") or "/"
        if "system:masters" not in user.groups and not path.startswith(_PUBLIC):
            raise Forbidden.of(GroupResource("", ""), "", f'User "{user.name}" cannot get path "{path}"')
        if request.method != "GET":
            raise MethodNotAllowed(
                Status(
                    message="the server does not allow this method on the requested resource",
                    reason="MethodNotAllowed",
                    details=StatusDetails(),
                    code=405,
                )
            )
        if path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
            return text_response(200, "ok")
        if path == "/version":
            return Response(200, msgspec.json.encode({"major": "1", "minor": "36", "gitVersion": "v1.36.4"}))
        return text_response(404, "404 page not found\n")
