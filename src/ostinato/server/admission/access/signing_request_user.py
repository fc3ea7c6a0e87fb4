"""CertificateSigningRequest user info: set spec.username, groups, uid and extra from the requesting user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.gvk import GroupResource
from ostinato.server.admission.chain import Plugin
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_REQUESTS = GroupResource("certificates.k8s.io", "certificatesigningrequests")


class SigningRequestUser(Plugin):
    covers = frozenset({_REQUESTS})

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or context.resource.group_resource != _REQUESTS or obj is None:
            return
        user = context.request.user
        assert user is not None
        user_fields = {
            "username": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
        }
        spec = {key: value for key, value in obj.get("spec", {}).items() if key not in user_fields}
        obj["spec"] = spec | {key: value for key, value in user_fields.items() if value}
