"""Options of the serving certificate."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import settings as server_options
from ostinato.server.http.serving_certificates import KeyPairFiles, TlsSettings


def parsed(*arguments: str) -> TlsSettings:
    parser = argparse.ArgumentParser()
    server_options.add_to(parser)
    return server_options.settings(parser.parse_args(arguments)).tls


def test_key_pairs_are_those_of_kube_apiserver() -> None:
    assert parsed() == TlsSettings()
    assert parsed("--tls-cert-file", "a.crt", "--tls-private-key-file", "a.key") == TlsSettings(
        key_pair=KeyPairFiles(Path("a.crt"), Path("a.key"))
    )
    assert parsed(
        "--tls-sni-cert-key", "a.crt,a.key", "--tls-sni-cert-key", "b.crt,b.key:*.b.com,b.com"
    ) == TlsSettings(
        sni=(
            KeyPairFiles(Path("a.crt"), Path("a.key")),
            KeyPairFiles(Path("b.crt"), Path("b.key"), ("*.b.com", "b.com")),
        )
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tls-cert-file", "a"), "--tls-cert-file needs --tls-private-key-file"),
        (("--tls-private-key-file", "a"), "--tls-private-key-file needs --tls-cert-file"),
        (("--tls-sni-cert-key", "a"), r"--tls-sni-cert-key a: want CERT,KEY or CERT,KEY:NAME,\.\.\."),
        (("--tls-sni-cert-key", "a,b,c"), "--tls-sni-cert-key a,b,c: want CERT,KEY"),
        (("--tls-sni-cert-key", "a,b:"), "--tls-sni-cert-key a,b:: want CERT,KEY"),
    ],
)
def test_incomplete_key_pairs_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        parsed(*arguments)
