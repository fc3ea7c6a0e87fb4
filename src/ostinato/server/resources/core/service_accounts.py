"""Strategy of ServiceAccounts."""

from __future__ import annotations

from ostinato.server.resources.strategy import Json, Strategy

_ENFORCE = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccount(Strategy):
    returns_deleted = True

    def prepare_create(self, obj: Json) -> None:
        _keep_secret_names(obj)

    def prepare_update(self, new: Json, old: Json) -> None:
        _keep_secret_names(new)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        if _ENFORCE not in new["metadata"].get("annotations", {}):
            return []
        if old is not None and _ENFORCE in old["metadata"].get("annotations", {}):
            return []
        advice = "prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{_ENFORCE}]: deprecated in v1.32+; {advice}"]


def _keep_secret_names(obj: Json) -> None:
    """Reduce references to Secrets to their names."""
    if "secrets" in obj:
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in obj["secrets"]]
