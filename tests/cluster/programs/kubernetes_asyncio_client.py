"""kubernetes-asyncio creates, lists, watches, patches and deletes.

python -m tests.cluster.programs.kubernetes_asyncio_client KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import asyncio
import sys

BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}


def main(kubeconfig: str, namespace: str) -> None:
    from kubernetes_asyncio import client, config, watch

    async def use() -> list[str]:
        configuration = client.Configuration()
        await config.load_kube_config(kubeconfig, client_configuration=configuration)
        async with client.ApiClient(configuration) as connection:
            api = client.CoreV1Api(connection)
            begin = await api.list_namespaced_config_map(namespace)
            await api.create_namespaced_config_map(namespace, BODY)
            patched = await api.patch_namespaced_config_map(
                "a", namespace, {"data": {"k": "2"}}, _content_type="application/merge-patch+json"
            )
            assert patched.data == {"k": "2"}
            await api.delete_namespaced_config_map("a", namespace)
            async with watch.Watch().stream(
                api.list_namespaced_config_map,
                namespace,
                field_selector="metadata.name=a",
                resource_version=begin.metadata.resource_version,
                timeout_seconds=2,
            ) as stream:
                return [event["type"] async for event in stream]

    assert asyncio.run(use()) == ["ADDED", "MODIFIED", "DELETED"]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
