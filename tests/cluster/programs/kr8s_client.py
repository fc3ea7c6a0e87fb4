"""kr8s creates, lists, watches, patches and deletes.

python -m tests.cluster.programs.kr8s_client KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import asyncio
import sys

BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}


def main(kubeconfig: str, namespace: str) -> None:
    import kr8s
    from kr8s.asyncio.objects import ConfigMap

    async def use() -> None:
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
        config_map = await ConfigMap(BODY, namespace=namespace, api=api)
        await config_map.create()
        await config_map.patch({"data": {"k": "2"}})
        assert "a" in [item.name async for item in api.get("configmaps", namespace=namespace)]
        async for kind, seen in api.watch("configmaps", namespace=namespace, field_selector="metadata.name=a"):
            assert (kind, seen.raw["data"]) == ("ADDED", {"k": "2"})
            break
        await config_map.delete()
        assert not await config_map.exists()

    asyncio.run(use())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
