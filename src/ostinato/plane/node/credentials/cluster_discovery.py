"""Cluster discovery with a bootstrap token, as `kubeadm join` does: authenticate the cluster by the hash of its CA.

The ConfigMap kube-public/cluster-info is read over an unverified connection. The CA in it is trusted if the hash of its
public key is one that the operator has given; all later connections are verified with that CA.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ostinato.api.errors import APIError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.client.client import Client
from ostinato.client.config.config import Config, Tls
from ostinato.client.config.secret import Secret
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.plane.access.cluster_info import CLUSTER_INFO, PUBLIC, ca_cert_hash
from ostinato.world import World

_TIMEOUT: Final = 30.0


class DiscoveryError(Exception):
    """The cluster is not reachable, or its CA has another hash."""


async def discover_cluster(world: World, server: str, token: str, hashes: Sequence[str]) -> Config:
    """Return a configuration with the bootstrap token, for a server whose CA has one of these hashes."""
    anonymous = Config(server=server, tls=Tls(insecure=True), source=server, timeout=_TIMEOUT)
    unverified = Client(HttpTransport(anonymous, world), world=world)
    try:
        info = await unverified.get(ConfigMap, CLUSTER_INFO, namespace=PUBLIC)
    except (APIError, TransportError) as error:
        raise DiscoveryError(f"{server}: cannot read ConfigMap {PUBLIC}/{CLUSTER_INFO}: {error}") from error
    finally:
        await unverified.close()
    authority = _authority(info, server)
    found = ca_cert_hash(authority)
    if found not in hashes:
        raise DiscoveryError(
            f"{server}: the CA has the hash {found}, not {' or '.join(hashes)}; this is not the cluster that "
            "--ca-cert-hash names"
        )
    return replace(Config(server=server, source=server), tls=Tls(ca_data=authority), token=Secret(token))


def _authority(info: ConfigMap, server: str) -> bytes:
    try:
        kubeconfig = decode_yaml(info.data["kubeconfig"])
        return base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"], validate=True)
    except (KeyError, IndexError, TypeError, ValueError, binascii.Error) as error:
        raise DiscoveryError(f"{server}: ConfigMap {PUBLIC}/{CLUSTER_INFO} has no CA: {error}") from error
