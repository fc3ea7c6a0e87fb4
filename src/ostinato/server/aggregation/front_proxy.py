"""Front proxy: this server authenticates to extension servers with a certificate, and names the user in headers.

Extension servers accept the headers only from a client whose certificate is signed by the authority in the ConfigMap
kube-system/extension-apiserver-authentication.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Final

import msgspec

from ostinato.http.fields import FIELD_NAME
from ostinato.server.access.authority import Pair
from ostinato.server.request import User

CLIENT_NAME: Final = "front-proxy-client"  # common name of the client certificate
AGGREGATOR: Final = User("system:kube-aggregator", groups=("system:masters",))
DISCOVERER: Final = User("system:kube-aggregator")
DESCRIBER: Final = User("system:aggregator")


class FrontProxy(msgspec.Struct, frozen=True):
    """`pair`: client certificate and key, loaded anew when they change. Defaults to none."""

    pair: Pair | None = None

    @property
    def stamp(self) -> tuple[int, int]:
        """Changes with the files."""
        if self.pair is None:
            return 0, 0
        found = self.pair.certificate.stat()
        return found.st_mtime_ns, found.st_ino

    def load(self, context: ssl.SSLContext) -> None:
        """Use the certificate in a TLS context. Raises OSError."""
        if self.pair is not None:
            context.load_cert_chain(self.pair.certificate, self.pair.key)


def identity_fields(user: User) -> Iterator[tuple[str, str]]:
    """The headers that name a user. ValueError if a value cannot be sent as it is: it would name someone else."""
    yield "x-remote-user", _checked("X-Remote-User", user.name)
    if user.uid:
        yield "x-remote-uid", _checked("X-Remote-Uid", user.uid)
    for group in user.groups:
        yield "x-remote-group", _checked("X-Remote-Group", group)
    for key, values in user.extra.items():
        name = f"X-Remote-Extra-{_escaped(key)}"
        for value in values:
            yield name.lower(), _checked(name, value)


def _checked(name: str, value: str) -> str:
    if any((ord(each) < 32 and each != "\t") or ord(each) == 127 for each in value):
        raise ValueError(f'net/http: invalid header field value for "{name}"')
    return value


def _escaped(key: str) -> str:
    """The key of an extra value as part of a header name: other characters and % are percent-encoded."""
    return "".join(
        chr(each) if each != 0x25 and FIELD_NAME.fullmatch(chr(each)) else f"%{each:02X}" for each in key.encode()
    )
