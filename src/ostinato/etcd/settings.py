"""How to reach an etcd cluster: endpoints, TLS files, user and key prefix."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

DEFAULT_PREFIX: Final = "/registry"
DEFAULT_PORT: Final = 2379
_FORM: Final = "want etcd://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/PREFIX]"


@dataclass(frozen=True)
class EtcdSettings:
    """Settings of a connection; `parse` and `from_servers` make them from what users write."""

    endpoints: tuple[str, ...]  # host:port each
    prefix: str = DEFAULT_PREFIX  # of all keys, without a slash at its end
    user: str = ""
    password: str = field(default="", repr=False)
    tls: bool = False
    cafile: str = ""  # empty: the authorities that the system trusts
    certfile: str = ""
    keyfile: str = ""

    @classmethod
    def parse(
        cls, url: str, *, cafile: str = "", certfile: str = "", keyfile: str = "", prefix: str = "", password: str = ""
    ) -> EtcdSettings:
        """Read `etcd://[USER:PASSWORD@]HOST:PORT[,...][/PREFIX]`; ValueError names what is wrong.

        With a certificate or an authority, connections use TLS. `prefix` and `password` are used if the URL has none.
        """
        shown = _without_password(url)
        if not url.startswith("etcd://"):
            raise ValueError(f"{shown}: {_FORM}")
        place, slash, path = url.removeprefix("etcd://").partition("/")
        account, _, hosts = place.rpartition("@")
        user, _, own_password = account.partition(":")
        if own_password and not user:
            raise ValueError(f"{shown}: a password without a user; {_FORM}")
        if "?" in url or "#" in url:
            raise ValueError(f"{shown}: options after ? or # are not supported; {_FORM}")
        own_prefix = slash + path
        if own_prefix.strip("/") and prefix and own_prefix.rstrip("/") != prefix.rstrip("/"):
            raise ValueError(f"{shown}: the prefix {own_prefix} differs from --etcd-prefix {prefix}; give one of them")
        return cls(
            tuple(_endpoint(host, shown) for host in hosts.split(",")),
            _prefix(own_prefix if own_prefix.strip("/") else prefix),
            unquote(user),
            unquote(own_password) or password,
            bool(cafile or certfile),
            *_checked_files(cafile, certfile, keyfile),
        )

    @classmethod
    def from_servers(
        cls, servers: str, *, cafile: str = "", certfile: str = "", keyfile: str = "", prefix: str = ""
    ) -> EtcdSettings:
        """Read `http[s]://HOST:PORT,...`, as kube-apiserver's --etcd-servers has them."""
        endpoints, schemes = [], set()
        for server in servers.split(","):
            scheme, separator, host = server.strip().partition("://")
            if not separator or scheme not in ("http", "https"):
                raise ValueError(f"--etcd-servers {servers}: {server.strip() or 'empty'}: want http[s]://HOST:PORT")
            schemes.add(scheme)
            endpoints.append(_endpoint(host.rstrip("/"), f"--etcd-servers {servers}"))
        if len(schemes) > 1:
            raise ValueError(f"--etcd-servers {servers}: http and https are mixed; use one of them")
        tls = schemes == {"https"}
        if not tls and (cafile or certfile):
            raise ValueError(f"--etcd-servers {servers}: http does not use certificates; write https")
        return cls(tuple(endpoints), _prefix(prefix), "", "", tls, *_checked_files(cafile, certfile, keyfile))

    def tls_context(self) -> ssl.SSLContext | None:
        """Read the files; None without TLS. ValueError names the file that cannot be used."""
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.cafile or None)
        except (OSError, ssl.SSLError) as error:
            raise ValueError(f"--etcd-cafile {self.cafile}: no certificates in PEM: {_reason(error)}") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        if self.certfile:
            try:
                context.load_cert_chain(self.certfile, self.keyfile)
            except (OSError, ssl.SSLError) as error:
                raise ValueError(
                    f"--etcd-certfile {self.certfile}, --etcd-keyfile {self.keyfile}: "
                    f"not a certificate in PEM with its key: {_reason(error)}"
                ) from None
        return context

    def __str__(self) -> str:
        return f"etcd://{','.join(self.endpoints)}{self.prefix}"


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)


def _checked_files(cafile: str, certfile: str, keyfile: str) -> tuple[str, str, str]:
    if bool(certfile) != bool(keyfile):
        given, missing = ("certfile", "keyfile") if certfile else ("keyfile", "certfile")
        raise ValueError(f"--etcd-{given} needs --etcd-{missing}")
    for option, file in (("cafile", cafile), ("certfile", certfile), ("keyfile", keyfile)):
        if file and not Path(file).is_file():
            raise ValueError(f"--etcd-{option} {file}: there is no such file")
    return cafile, certfile, keyfile


def _prefix(text: str) -> str:
    trimmed = text.strip("/")
    return f"/{trimmed}" if trimmed else DEFAULT_PREFIX


def _endpoint(text: str, shown: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    is_v6 = host.startswith("[") and host.endswith("]")
    if not host or (":" in host and not is_v6) or not host.isprintable() or any(each in host for each in " /@"):
        raise ValueError(f"{shown}: {text or 'an empty host'}: want HOST:PORT, an IPv6 address in brackets")
    if not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{shown}: {text}: the port is not a number from 1 to 65535")
    return f"{host}:{int(port)}"


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    account, at, hosts = place.rpartition("@")
    user, colon, _ = account.partition(":")
    return f"{scheme}{separator}{user}{colon and ':***'}{at}{hosts}{slash}{path}"
