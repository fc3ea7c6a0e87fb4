"""kopf's operator, for an environment with kopf; kubeconfig and namespace are in OPERATOR_* variables.

- `kopf run --standalone --namespace NAMESPACE kopf_operator.py`: usual handlers, with logs and events; ConfigMaps are
  created with the official asyncio client.
- `python kopf_operator.py`: as fast as possible, without logs and events; ConfigMaps are created with plain HTTP.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import uvloop
import yaml
from kubernetes_asyncio import client, config

KUBECONFIG, NAMESPACE = os.environ["OPERATOR_KUBECONFIG"], os.environ["OPERATOR_NAMESPACE"]
QUIET = __name__ == "__main__"


def entry(config: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the only cluster or user of a kubeconfig."""
    found: dict[str, Any] = config[f"{kind}s"][0][kind]
    return found


CONFIG = yaml.safe_load(Path(KUBECONFIG).read_text())
CLUSTER, USER = entry(CONFIG, "cluster"), entry(CONFIG, "user")
CONFIG_MAPS = f"{CLUSTER['server']}/api/v1/namespaces/{NAMESPACE}/configmaps"


def pem(holder: dict[str, Any], name: str, suffix: str) -> str:
    """Return a file with a certificate or key of the kubeconfig, or ""."""
    if f"{name}-data" not in holder:
        return str(holder.get(name, ""))
    path = Path(f"{KUBECONFIG}.{suffix}")
    path.touch(mode=0o600)
    path.write_bytes(base64.b64decode(holder[f"{name}-data"]))
    return str(path)


FILES = {
    "authority": pem(CLUSTER, "certificate-authority", "ca"),
    "certificate": pem(USER, "client-certificate", "crt"),
    "key": pem(USER, "client-key", "key"),
}


@kopf.on.login()
def login(**_: Any) -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(
        server=CLUSTER["server"],
        ca_path=FILES["authority"] or None,
        token=USER.get("token"),
        certificate_path=FILES["certificate"] or None,
        private_key_path=FILES["key"] or None,
    )


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    if not QUIET:
        await config.load_kube_config(KUBECONFIG)
        memo.session = client.ApiClient()
        return
    settings.posting.enabled = False  # of events
    context = ssl.create_default_context(cafile=FILES["authority"] or None)
    if FILES["certificate"]:
        context.load_cert_chain(FILES["certificate"], FILES["key"])
    headers = {"Authorization": f"Bearer {USER['token']}"} if "token" in USER else {}
    memo.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), headers=headers)


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    await memo.session.close()


@kopf.on.resume("gadgets.bench.example.dev")
@kopf.on.create("gadgets.bench.example.dev")
@kopf.on.update("gadgets.bench.example.dev")
async def gadgets(name: str, spec: kopf.Spec, meta: kopf.Meta, patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": spec["text"]}}
    kopf.adopt(wanted)
    if QUIET:
        await post(memo.session, wanted)
    else:
        await create(memo.session, wanted)
    patch.status.update(configMap=name, observedGeneration=meta["generation"])


async def create(session: client.ApiClient, wanted: dict[str, Any]) -> None:
    try:
        await client.CoreV1Api(session).create_namespaced_config_map(NAMESPACE, wanted)
    except client.ApiException as error:
        if error.status != 409:
            raise kopf.TemporaryError(str(error), delay=1) from error


async def post(session: aiohttp.ClientSession, wanted: dict[str, Any]) -> None:
    async with session.post(CONFIG_MAPS, json=wanted) as answer:
        if answer.status not in (201, 409):
            raise kopf.TemporaryError(await answer.text(), delay=1)


if QUIET:
    logging.disable(logging.INFO)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(kopf.operator(standalone=True, namespaces=[NAMESPACE]))
