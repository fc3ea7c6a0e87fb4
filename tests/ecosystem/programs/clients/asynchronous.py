"""kubernetes_asyncio: objects and a watch."""

import asyncio

from kubernetes_asyncio import client, config, watch


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        settings = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data={"a": "1"})
        created = await core.create_namespaced_config_map("default", settings)
        await core.patch_namespaced_config_map("settings", "default", {"data": {"a": "2"}})
        version = created.metadata.resource_version
        async with watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=30
        ) as events:
            async for event in events:
                assert event["object"].data == {"a": "2"}
                break
        await core.delete_namespaced_config_map("settings", "default")


asyncio.run(main())
