"""lightkube creates, lists, watches, patches and deletes.

python -m tests.cluster.programs.lightkube_client KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import sys

import pytest


def main(kubeconfig: str, namespace: str) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap

    client = Client(KubeConfig.from_file(kubeconfig), namespace=namespace, field_manager="lightkube")
    client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "1"}))
    assert client.patch(ConfigMap, "a", {"data": {"k": "2"}}).data == {"k": "2"}
    assert "a" in [item.metadata.name for item in client.list(ConfigMap)]
    kind, seen = next(iter(client.watch(ConfigMap, fields={"metadata.name": "a"})))
    assert (kind, seen.data) == ("ADDED", {"k": "2"})
    applied = client.apply(ConfigMap(metadata=ObjectMeta(name="b"), data={"k": "3"}))
    assert applied.metadata.managedFields[0].operation == "Apply"
    client.delete(ConfigMap, "a")
    with pytest.raises(ApiError, match="not found"):
        client.get(ConfigMap, "a")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
