"""`ostinato token create`: create a bootstrap token, with which a node joins the cluster."""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import timedelta
from typing import Final

from ostinato.api.errors import APIError
from ostinato.api.meta import ObjectMeta
from ostinato.api.time import Duration, Time, TimeError
from ostinato.cli.error import CommandError
from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import Secret
from ostinato.plane.access.cluster_info import BOOTSTRAPPERS, ca_cert_hash
from ostinato.world import World

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


def create(options: argparse.Namespace) -> None:
    """Create a token and print it, or the `ostinato node` command that uses it."""
    try:
        config = Config.load(context=options.context, path=options.kubeconfig)
        seconds = Duration.parse(options.ttl).seconds
    except ConfigError as error:
        raise CommandError(str(error)) from None
    except TimeError as error:
        raise CommandError(f"--ttl {options.ttl}: {error}") from None
    world = World.real()
    try:
        token = asyncio.run(_create(world, config, seconds))
    except (APIError, TransportError) as error:
        raise CommandError(f"cannot create a bootstrap token: {error}") from None
    finally:
        world.executor.close()
    sys.stdout.write(f"{_command(config, token) if options.print_join_command else token}\n")


async def _create(world: World, config: Config, seconds: float) -> str:
    name, secret = _text(world, 6), _text(world, 16)
    data = {
        "token-id": name,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": BOOTSTRAPPERS,
        "description": "created by ostinato token create",
    }
    if seconds:
        data["expiration"] = str(Time.of(world.clock.now() + timedelta(seconds=seconds)))
    client = Client(HttpTransport(config, world), world=world, field_manager="ostinato")
    metadata = ObjectMeta(name=f"bootstrap-token-{name}", namespace="kube-system")
    try:
        await client.create(Secret(metadata=metadata, type="bootstrap.kubernetes.io/token", string_data=data))
    finally:
        await client.close()
    return f"{name}.{secret}"


def _text(world: World, length: int) -> str:
    """Return random characters, uniformly distributed: bytes that would bias the choice are discarded."""
    most, found = 256 - 256 % len(_LETTERS), ""
    while len(found) < length:
        found += "".join(_LETTERS[each % len(_LETTERS)] for each in world.ids.token(length) if each < most)
    return found[:length]


def _command(config: Config, token: str) -> str:
    authority = config.tls.ca_data or (b"" if config.tls.ca_file is None else config.tls.ca_file.read_bytes())
    if not authority:
        raise CommandError(f"{config.source}: the cluster has no certificate-authority; a node needs its hash")
    return f"ostinato node --server {config.server} --token {token} --ca-cert-hash {ca_cert_hash(authority)}"
