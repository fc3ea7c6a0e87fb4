"""The options of authentication, as kube-apiserver names them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ostinato.cli.failure import Failure

if TYPE_CHECKING:
    from ostinato.server.access.authentication.settings import AccountSettings, AuthenticationSettings


def add_to(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--token-auth-file", metavar="CSV", help='bearer tokens, a line each: token,user,uid,"group1,group2"'
    )
    _add_switch(group, "--enable-bootstrap-token-auth", "accept bootstrap tokens: Secrets in kube-system", default=True)
    _add_list(group, "--api-audiences", "AUDIENCE", "for whom tokens must be (default: the issuers)")
    _add_list(
        group,
        "--service-account-issuer",
        "URL",
        "of service account tokens: the first signs, all are accepted (default: https://kubernetes.default.svc)",
    )
    group.add_argument(
        "--service-account-signing-key-file",
        metavar="PEM",
        help="private key of service account tokens, RSA or ECDSA (default: sa.key in the state directory)",
    )
    _add_list(group, "--service-account-key-file", "PEM", "further keys, public or private, whose tokens are accepted")
    group.add_argument("--service-account-jwks-uri", metavar="URL", default="", help="where others find the keys")
    group.add_argument(
        "--service-account-max-token-expiration",
        metavar="DURATION",
        default="0s",
        help="longest life of a service account token, at least 1h (default: unlimited)",
    )
    _add_switch(
        group,
        "--service-account-extend-token-expiration",
        "tokens that admission adds to Pods live for a year",
        default=True,
    )


def _add_list(group: argparse._ArgumentGroup, name: str, value: str, text: str) -> None:
    """An option that may be given several times, and with several values at once."""
    group.add_argument(name, metavar=value, action="append", default=[], help=f"{text}; may be given several times")


def _values(given: list[str]) -> tuple[str, ...]:
    return tuple(value for values in given for value in values.split(",") if value)


def _add_switch(group: argparse._ArgumentGroup, name: str, text: str, *, default: bool) -> None:
    """A boolean option as kube-apiserver has them: `--name`, `--name=false`."""
    shown = str(default).lower()
    group.add_argument(
        name, metavar="BOOL", type=_boolean, nargs="?", const=True, default=default, help=f"{text} (default: {shown})"
    )


def _boolean(text: str) -> bool:
    known = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return known[text.lower()]


def settings(options: argparse.Namespace) -> AuthenticationSettings:
    from ostinato.server.access.authentication.settings import AuthenticationSettings  # noqa: PLC0415

    return AuthenticationSettings(
        token_file=_path(options.token_auth_file),
        bootstrap_tokens=options.enable_bootstrap_token_auth,
        audiences=_values(options.api_audiences),
        accounts=_accounts(options),
    )


def _accounts(options: argparse.Namespace) -> AccountSettings:
    from ostinato.server.access.authentication.settings import AccountSettings  # noqa: PLC0415

    issuers = options.service_account_issuer
    for place, issuer in enumerate(issuers):
        if not issuer:
            raise Failure("--service-account-issuer must not be empty")
        if issuer in issuers[:place]:
            raise Failure(f"--service-account-issuer {issuer}: given twice")
    jwks_uri = options.service_account_jwks_uri
    if jwks_uri and not jwks_uri.startswith("https://"):
        raise Failure(f"--service-account-jwks-uri {jwks_uri}: want an https URL")
    longest = _duration("--service-account-max-token-expiration", options.service_account_max_token_expiration)
    if longest and not 3600 <= longest <= 1 << 32:
        raise Failure("--service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
    return AccountSettings(
        issuers=tuple(issuers) or AccountSettings().issuers,
        signing_key=_path(options.service_account_signing_key_file),
        key_files=tuple(Path(file) for file in options.service_account_key_file),
        jwks_uri=jwks_uri,
        extend_expiration=options.service_account_extend_token_expiration,
        max_expiration=int(longest),
    )


def _duration(name: str, text: str) -> float:
    """The seconds of a duration as Go writes them: 90s, 1h30m."""
    from ostinato.api.time import Duration, TimeError  # noqa: PLC0415

    try:
        return Duration.parse(text).seconds
    except TimeError:
        raise Failure(f"{name} {text}: want a duration, for example 90s or 1h30m") from None


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
