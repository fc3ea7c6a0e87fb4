"""`/configz`: the configuration of a node's agent, as a KubeletConfiguration has it.

Only what applies to this agent is shown; fields of the kubelet that it does not have are absent.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

CONFIGZ: Final = "/configz"


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`address`, `port`: of the node's API. `max_pods`: capacity. `dns`: server and domain of Pods; "" for none."""

    address: str = ""
    port: int = 0
    max_pods: int = 110
    dns: str = ""
    domain: str = ""

    def page(self) -> bytes:
        shown: dict[str, Any] = {
            "address": self.address,
            "port": self.port,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True, "cacheTTL": "2m0s"},
                "x509": {},
            },
            "authorization": {
                "mode": "Webhook",
                "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
            },
            "maxPods": self.max_pods,
            "nodeStatusUpdateFrequency": "10s",
            "nodeLeaseDurationSeconds": 40,
            "enableServer": True,
            "readOnlyPort": 0,
            "kind": "KubeletConfiguration",
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
        }
        if self.dns:
            shown |= {"clusterDNS": [self.dns], "clusterDomain": self.domain}
        return msgspec.json.encode({"kubeletconfig": shown})
