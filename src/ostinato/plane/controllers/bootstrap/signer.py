"""Bootstrap signer: signs the ConfigMap kube-public/cluster-info with each bootstrap token for signing.

The ConfigMap is public; a node that has a token verifies it by the token's signature.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from ostinato.api.errors import Conflict
from ostinato.api.gvk import NamespacedName
from ostinato.cache import Event, InformerSettings
from ostinato.controllers import Context, ForEvent, Request, Result
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.bootstrap import tokens as bootstrap

NAME: Final = "bootstrap-signer-controller"
_CLUSTER_INFO: Final = NamespacedName("kube-public", "cluster-info")
_SIGNATURE: Final = "jws-kubeconfig-"
_NAME: Final = re.compile(r"bootstrap-token-([a-z0-9]{6})")


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    info = InformerSettings(namespaces=(_CLUSTER_INFO.namespace,), fields={"metadata.name": _CLUSTER_INFO.name})
    (
        manager.build(NAME)
        .watch_for(ConfigMap, settings=info)
        .watches(Secret, handler=ForEvent(_cluster_info), settings=bootstrap.SECRETS)
        .complete(BootstrapSigner())
    )


def _cluster_info(_event: Event) -> Iterable[NamespacedName]:
    return (_CLUSTER_INFO,)


class BootstrapSigner:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        found = await ctx.client.live.get(ConfigMap, request, missing=None)
        if found is None or "kubeconfig" not in found.data:
            return None
        secrets = await ctx.client.live.list(Secret, namespace=bootstrap.NAMESPACE, fields={"type": bootstrap.TYPE})
        now, content = ctx.world.clock.now(), found.data["kubeconfig"]
        unsigned = {key: value for key, value in found.data.items() if not key.startswith(_SIGNATURE)}
        tokens = dict(filter(None, (_signing_token(secret, now) for secret in secrets)))
        signed = unsigned | {f"{_SIGNATURE}{name}": signature(content, name, key) for name, key in tokens.items()}
        if signed != found.data:
            found.data = signed
            try:
                await ctx.client.update(found)
            except Conflict:
                return Result(requeue_after=0.1)
        ends = [bootstrap.seconds_left(secret, now) for secret in secrets]
        left = min((end for end in ends if end), default=None)
        return None if left is None else Result(requeue_after=left)


def _signing_token(secret: Secret, now: datetime) -> tuple[str, str] | None:
    """Return id and secret of a token that may sign; None if it may not."""
    name = _NAME.fullmatch(secret.metadata.name)
    identifier, key = bootstrap.text(secret, "token-id"), bootstrap.text(secret, "token-secret")
    if name is None or name[1] != identifier or not key:
        return None
    if bootstrap.seconds_left(secret, now) == 0 or bootstrap.text(secret, "usage-bootstrap-signing") != "true":
        return None
    return identifier, key


def signature(content: str, identifier: str, key: str) -> str:
    """Return a detached JSON Web Signature (HS256) of the content."""
    header = _encoded(msgspec.json.encode({"alg": "HS256", "kid": identifier}))
    signing = header + b"." + _encoded(content.encode())
    return (header + b".." + _encoded(hmac.new(key.encode(), signing, hashlib.sha256).digest())).decode()


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
