"""Whose certificate a node's agent shows: where it is verified, it has to be that of the node."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from ostinato.http.tls_stream import TlsStream
from ostinato.server.access.authority import Authority
from ostinato.server.backends.forwarding import Backend, connect
from ostinato.world import World


@pytest.mark.parametrize(
    ("shown", "mode", "is_believed"),
    [
        ("system:node:n", ssl.CERT_REQUIRED, True),
        ("system:node:other", ssl.CERT_REQUIRED, False),
        ("kube-apiserver", ssl.CERT_REQUIRED, False),  # at the address that somebody gave the node
        ("kube-apiserver", ssl.CERT_NONE, True),
    ],
)
def test_cve_2022_3294_only_the_certificate_of_the_node_is_believed(
    tmp_path: Path, shown: str, mode: ssl.VerifyMode, is_believed: bool
) -> None:
    authority = Authority(World.real(), tmp_path)
    pair = authority._pair("agent", ["127.0.0.1"], common_name=shown)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pair.certificate, pair.key)
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname = False
    asking.verify_mode = mode
    asking.load_verify_locations(authority.files.certificate)

    async def play() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=serving)
        async with server:
            port = server.sockets[0].getsockname()[1]
            backend = Backend(["127.0.0.1"], port, "n.test", asking, "n")
            if is_believed:
                stream = await connect(backend, World.real().clock)
                assert isinstance(stream, TlsStream)
                stream.close()
            else:
                with pytest.raises(
                    ssl.SSLCertVerificationError, match=f'certificate is for "{shown}", not for node "n"'
                ):
                    await connect(backend, World.real().clock)

    asyncio.run(play())
