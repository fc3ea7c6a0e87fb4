"""ServiceAccount: sets the default service account and mounts its token."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Unknown
from ostinato.api.text.go_format import quote
from ostinato.server.access.authorization.references import secrets_and_maps
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.resources.core.pods.spec.defaults import containers_of
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json
from ostinato.world.ids import Ids, hash_text

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_DEFAULT = "default"
_ATTEMPTS, _INTERVAL = 10, 0.15  # waiting for the default account of a new namespace
_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME = "kube-api-access-"
_MIRROR = "kubernetes.io/config.mirror"
_TOKEN_SECONDS = 3607
_SUFFIX = 5
_ENFORCE = "kubernetes.io/enforce-mountable-secrets"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")


class ServiceAccount(Plugin):
    covers = resources("pods")
    judges_status_by_content = True  # it ignores them

    def __init__(self, accounts: Lister) -> None:
        self._accounts = accounts

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or not is_of(context, "", "pods"):
            return
        assert obj is not None
        spec = obj["spec"]
        if _MIRROR in obj["metadata"].get("annotations", {}):
            self._check_mirror(context, obj)
            return
        name = spec.get("serviceAccountName") or _DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await self._find(context, name)
        if account is None:
            raise forbidden(context, obj, _unknown(context, name))
        if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
            _mount_token(spec, _suffix(obj["metadata"], context.world.ids))
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [
                {"name": secret["name"]} if secret.get("name") else {} for secret in account["imagePullSecrets"]
            ]
        if _is_strict(account):
            why = _foreign_secret(spec, account, name)
            if why:
                raise forbidden(context, obj, why)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        resource = context.resource.gvr
        if operation != "UPDATE" or (resource.group, resource.resource) != ("", "pods"):
            return
        if context.route.subresource != "ephemeralcontainers":
            return
        assert obj is not None
        name = obj["spec"].get("serviceAccountName", "")
        if not name:
            about = f"{context.route.namespace}/{context.route.name}"
            raise forbidden(context, obj, f"no service account specified for pod {about}")
        account = await self._find(context, name)
        if account is None:
            raise forbidden(context, obj, _unknown(context, name))
        if _is_strict(account):
            why = _foreign_in_environment(obj["spec"], account, name, (("ephemeralContainers", "ephemeral container"),))
            if why:
                raise Unknown.of(why)

    def _check_mirror(self, context: Context, pod: Json) -> None:
        if pod["spec"].get("serviceAccountName"):
            raise forbidden(context, pod, "a mirror pod may not reference service accounts")
        if any(each.resource == "secrets" for each in secrets_and_maps(pod)):
            raise forbidden(context, pod, "a mirror pod may not reference secrets")
        volumes = pod["spec"].get("volumes", ())
        sources = [source for volume in volumes for source in volume.get("projected", {}).get("sources") or ()]
        if any("serviceAccountToken" in source for source in sources):
            raise forbidden(context, pod, "a mirror pod may not use ServiceAccountToken volume projections")

    async def _find(self, context: Context, name: str) -> Json | None:
        account = self._accounts.shared(name, context.route.namespace)
        for _ in range(_ATTEMPTS - 1 if name == _DEFAULT else 0):
            if account is not None:
                break
            await context.world.clock.sleep(_INTERVAL)
            account = self._accounts.shared(name, context.route.namespace)
        return account


def _unknown(context: Context, name: str) -> str:
    about = f"{context.route.namespace}/{name}"
    return f"error looking up service account {about}: serviceaccount {quote(name)} not found"


def _is_strict(account: Json) -> bool:
    return account["metadata"].get("annotations", {}).get(_ENFORCE) in _TRUE


def _suffix(meta: Json, ids: Ids) -> str:
    """The end of the volume's name. Pods of a controller have the same, so that their specs are equal."""
    owner = next((each.get("uid", "") for each in meta.get("ownerReferences", ()) if each.get("controller")), "")
    return hash_text(zlib.crc32(owner.encode()))[:_SUFFIX] if owner else ids.suffix(_SUFFIX)


def _mount_token(spec: Json, suffix: str) -> None:
    name = next((v["name"] for v in spec.get("volumes", ()) if v.get("name", "").startswith(_VOLUME)), "")
    present, name = bool(name), name or _VOLUME + suffix
    mounted = False
    for container in containers_of(spec, "initContainers", "containers"):
        mounts = container.get("volumeMounts", [])
        if not any(mount.get("mountPath") == _MOUNT for mount in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": _MOUNT}]
            mounted = True
    if mounted and not present:
        spec["volumes"] = [*spec.get("volumes", ()), {"name": name, "projected": _token_volume()}]


def _token_volume() -> Json:
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
        "defaultMode": 0o644,
    }


def _foreign_secret(spec: Json, account: Json, name: str) -> str:
    """Why enforce-mountable-secrets rejects a Pod's Secrets, "" if it does not."""
    known, because = _secrets(account), _because(name)
    for volume in spec.get("volumes", ()):
        secret = volume.get("secret", {}).get("secretName")
        if secret is not None and secret not in known:
            return f'volume with secret.secretName="{secret}" {because}'
    kinds = (("initContainers", "init container"), ("containers", "container"))
    why = _foreign_in_environment(spec, account, name, kinds)
    if why:
        return why
    pulled = {secret.get("name", "") for secret in account.get("imagePullSecrets", ())}
    for i, reference in enumerate(spec.get("imagePullSecrets", ())):
        if reference.get("name", "") not in pulled:
            because = f"is not allowed because service account {name} does not reference that imagePullSecret"
            return f'imagePullSecrets[{i}].name="{reference.get("name", "")}" {because}'
    return ""


def _secrets(account: Json) -> set[str]:
    return {secret.get("name", "") for secret in account.get("secrets", ())}


def _because(name: str) -> str:
    return f"is not allowed because service account {name} does not reference that secret"


def _foreign_in_environment(spec: Json, account: Json, name: str, kinds: tuple[tuple[str, str], ...]) -> str:
    """As `_foreign_secret`, for the environment of containers."""
    known, because = _secrets(account), _because(name)
    for kind, what in kinds:
        for container in spec.get(kind) or ():
            who = f"{what} {container.get('name', '')}"
            for variable in container.get("env", ()):
                secret = variable.get("valueFrom", {}).get("secretKeyRef", {}).get("name")
                if secret is not None and secret not in known:
                    envvar = variable.get("name", "")
                    return f'{who} with envVar {envvar} referencing secret.secretName="{secret}" {because}'
            for source in container.get("envFrom", ()):
                secret = source.get("secretRef", {}).get("name")
                if secret is not None and secret not in known:
                    return f'{who} with envFrom referencing secret.secretName="{secret}" {because}'
    return ""
