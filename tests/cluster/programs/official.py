"""The official client creates, lists, watches, patches and deletes.

python -m tests.cluster.programs.official KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import sys

import pytest

BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}


def main(kubeconfig: str, namespace: str) -> None:
    from kubernetes import client, config, watch

    api = client.CoreV1Api(config.new_client_from_config(kubeconfig))
    begin = api.list_namespaced_config_map(namespace)
    created = api.create_namespaced_config_map(namespace, BODY)
    assert created.metadata.uid
    assert api.patch_namespaced_config_map("a", namespace, {"data": {"k": "2"}}).data == {"k": "2"}
    assert "a" in [item.metadata.name for item in api.list_namespaced_config_map(namespace).items]
    api.delete_namespaced_config_map("a", namespace)
    with pytest.raises(client.ApiException, match="not found"):
        api.read_namespaced_config_map("a", namespace)
    stream = watch.Watch().stream(
        api.list_namespaced_config_map,
        namespace,
        field_selector="metadata.name=a",
        resource_version=begin.metadata.resource_version,
        timeout_seconds=2,
    )
    assert [event["type"] for event in stream] == ["ADDED", "MODIFIED", "DELETED"]
    api.api_client.rest_client.pool_manager.clear()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
