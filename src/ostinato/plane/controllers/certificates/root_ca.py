"""Root CA certificate publisher: maintains the ConfigMap kube-root-ca.crt in every namespace.

Without a CA certificate in the options it does nothing.
"""

from __future__ import annotations

from typing import Final

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.objects.per_namespace import PerNamespaceObject

NAME: Final = "root-ca-certificate-publisher-controller"
CONFIG_MAP: Final = "kube-root-ca.crt"
_DESCRIPTION: Final = "kubernetes.io/description"
_DESCRIBED: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def add_to(manager: Manager, options: Options) -> None:
    if options.ca_certificate is None:
        return
    data = {"ca.crt": options.ca_certificate.read_text()}

    def wanted() -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, annotations={_DESCRIPTION: _DESCRIBED}), data=dict(data))

    def correct(found: ConfigMap) -> bool:
        if found.data == data and found.metadata.annotations.get(_DESCRIPTION):
            return False
        found.data = dict(data)
        found.metadata.annotations[_DESCRIPTION] = _DESCRIBED
        return True

    PerNamespaceObject(wanted, correct).add_to(manager, NAME)
