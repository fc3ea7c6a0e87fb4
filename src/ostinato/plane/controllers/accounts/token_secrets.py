"""Token controller: fills Secrets of type kubernetes.io/service-account-token.

- A Secret that names a service account in an annotation gets its token, the CA certificate and the namespace.
- When the service account is deleted or recreated, its Secrets are deleted.
- When a Secret is deleted, its service account no longer lists it.

Without the signing key of the API server Secrets are not filled.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from ostinato.api.errors import Conflict, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.cache import Deleted, Event, InformerSettings
from ostinato.controllers import Context, Dependencies, Request
from ostinato.kinds.core_v1 import Secret, ServiceAccount
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.server.access.authentication.service_accounts.legacy_tokens import LEGACY_ISSUER
from ostinato.server.access.authentication.tokens.keys import ServiceAccountKeys
from ostinato.world import World

NAME: Final = "serviceaccount-token-controller"
TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
SECRETS: Final = InformerSettings(fields={"type": TYPE})
"""Informer settings: token Secrets only."""
_CLAIM: Final = "kubernetes.io/serviceaccount/"


def add_to(manager: Manager, options: Options) -> None:
    if options.account_key is None:
        return
    (
        manager.build(NAME)
        .watch_for(Secret, settings=SECRETS)
        .watches(ServiceAccount, map_to=_secrets_of, predicates=[_is_deletion])
        .complete(TokenSecretReconciler(options.account_key, options.ca_certificate))
    )


def _is_deletion(event: Event) -> bool:
    return isinstance(event, Deleted)


async def _secrets_of(account: ServiceAccount, dependencies: Dependencies) -> Iterable[NamespacedName]:
    """Return the keys of a service account's Secrets."""
    meta = account.metadata
    found = await dependencies.client.live.list(Secret, namespace=meta.namespace, fields={"type": TYPE})
    return [
        NamespacedName(each.metadata.namespace, each.metadata.name)
        for each in found
        if each.metadata.annotations.get(ACCOUNT) == meta.name
    ]


class TokenSecretReconciler:
    """Reconciles token Secrets.

    - `key`: private key of service account tokens.
    - `ca_certificate`: CA certificate of the cluster, in PEM.
    """

    def __init__(self, key: Path, ca_certificate: Path | None) -> None:
        self._key = key
        self._ca_certificate = ca_certificate
        self._keys: ServiceAccountKeys | None = None

    async def reconcile(self, request: Request, ctx: Context) -> None:
        secret = await ctx.client.live.get(Secret, request, missing=None)
        if secret is None:
            await self._remove_reference(request, ctx)
            return
        name = secret.metadata.annotations.get(ACCOUNT, "")
        if secret.type != TYPE or not name or secret.metadata.deletion_timestamp is not None:
            return
        account = await ctx.client.live.get(ServiceAccount, NamespacedName(request.namespace, name), missing=None)
        uid = secret.metadata.annotations.get(ACCOUNT_UID, "")
        try:
            if account is None or (uid and uid != account.metadata.uid):
                await ctx.client.delete(secret, missing_ok=True)
            elif self._fill(secret, account, ctx.world):
                await ctx.client.update(secret)
        except (Conflict, NotFound):  # the change enqueues it again
            return

    def _fill(self, secret: Secret, account: ServiceAccount, world: World) -> bool:
        """Add missing data; return whether the Secret was changed."""
        wanted = dict(secret.data)
        if self._ca_certificate is not None:
            wanted["ca.crt"] = self._ca_certificate.read_bytes()
        wanted.setdefault("namespace", secret.metadata.namespace.encode())
        if not wanted.get("token"):
            wanted["token"] = self._token(secret, account, world)
        if wanted == secret.data:
            return False
        secret.data = wanted
        secret.metadata.annotations |= {ACCOUNT: account.metadata.name, ACCOUNT_UID: account.metadata.uid}
        return True

    def _token(self, secret: Secret, account: ServiceAccount, world: World) -> bytes:
        if self._keys is None:
            self._keys = ServiceAccountKeys(world, signing=None, kept=self._key, verifying=())
        namespace, name = secret.metadata.namespace, account.metadata.name
        claims = {
            "iss": LEGACY_ISSUER,
            f"{_CLAIM}namespace": namespace,
            f"{_CLAIM}secret.name": secret.metadata.name,
            f"{_CLAIM}service-account.name": name,
            f"{_CLAIM}service-account.uid": account.metadata.uid,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        return self._keys.signing.sign(msgspec.json.encode(claims)).encode()

    async def _remove_reference(self, request: Request, ctx: Context) -> None:
        """Remove a deleted Secret from the lists of service accounts."""
        for account in await ctx.client.live.list(ServiceAccount, namespace=request.namespace):
            left = [each for each in account.secrets if each.name != request.name]
            if len(left) != len(account.secrets):
                account.secrets = left
                await ctx.client.update(account)
