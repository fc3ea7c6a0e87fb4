"""Authentication options, with kube-apiserver's names."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ostinato.cli.error import CommandError
from ostinato.cli.options.server.values import boolean, seconds

if TYPE_CHECKING:
    from ostinato.server.access.authentication.settings import (
        AuthenticationSettings,
        OidcSettings,
        RequestHeaderSettings,
        ServiceAccountSettings,
        TokenWebhookSettings,
    )

_logger = logging.getLogger(__name__)


def add_to(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--token-auth-file", metavar="CSV", help='file of bearer tokens, one per line: token,user,uid,"group1,group2"'
    )
    _add_switch(
        group,
        "--enable-bootstrap-token-auth",
        "accept bootstrap tokens: Secrets in kube-system",
        default=True,
    )
    _add_list(
        group,
        "--api-audiences",
        "AUDIENCE",
        "audience of the server; service account tokens need one of them (default: the issuers)",
    )
    _add_list(
        group,
        "--service-account-issuer",
        "URL",
        "issuer of service account tokens; the first issues tokens, all are accepted "
        "(default: https://kubernetes.default.svc)",
    )
    group.add_argument(
        "--service-account-signing-key-file",
        metavar="PEM",
        help="private key that signs service account tokens, RSA or ECDSA (default: sa.key in the state directory)",
    )
    _add_list(
        group,
        "--service-account-key-file",
        "PEM",
        "public or private key that also verifies service account tokens",
    )
    group.add_argument(
        "--service-account-jwks-uri",
        metavar="URL",
        default="",
        help="URI of the JWKS in the OpenID discovery document (default: the server's own)",
    )
    group.add_argument(
        "--service-account-max-token-expiration",
        metavar="DURATION",
        default="0s",
        help="longest lifetime of a service account token, at least 1h (default: unlimited)",
    )
    _add_switch(
        group,
        "--service-account-extend-token-expiration",
        "extend tokens mounted into Pods from one hour to one year",
        default=True,
    )
    group.add_argument(
        "--client-ca-file", metavar="PEM", help="additional certificate authority of client certificates"
    )
    _add_switch(group, "--anonymous-auth", "allow requests without credentials", default=None)
    group.add_argument(
        "--authentication-config",
        metavar="YAML",
        help="AuthenticationConfiguration file: JWT issuers and anonymous requests",
    )
    _add_oidc(group)
    _add_webhook(group)
    _add_front_proxy(group)


def _add_oidc(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--oidc-issuer-url", metavar="URL", default="", help="accept ID tokens of this OpenID Connect issuer"
    )
    group.add_argument("--oidc-client-id", metavar="ID", default="", help="audience that ID tokens must have")
    group.add_argument(
        "--oidc-ca-file", metavar="PEM", help="certificate authority of the issuer (default: the system's)"
    )
    group.add_argument(
        "--oidc-username-claim", metavar="CLAIM", default="sub", help="claim with the user name (default: %(default)s)"
    )
    group.add_argument(
        "--oidc-username-prefix",
        metavar="TEXT",
        default="",
        help='prefix of user names; "-" for none (default: the issuer and "#", except for the claim email)',
    )
    group.add_argument("--oidc-groups-claim", metavar="CLAIM", default="", help="claim with the groups")
    group.add_argument("--oidc-groups-prefix", metavar="TEXT", default="", help="prefix of group names")
    group.add_argument(
        "--oidc-required-claim",
        metavar="CLAIM=VALUE",
        action="append",
        default=[],
        help="claim that must have this value; may be repeated",
    )
    _add_list(group, "--oidc-signing-algs", "ALG", "accepted signature algorithm (default: RS256)")


def _add_webhook(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--authentication-token-webhook-config-file",
        metavar="KUBECONFIG",
        help="kubeconfig of a webhook that reviews tokens unknown to the server",
    )
    group.add_argument(
        "--authentication-token-webhook-version",
        choices=("v1", "v1beta1"),
        default="v1beta1",
        help="version of the TokenReviews sent to the webhook (default: %(default)s)",
    )
    group.add_argument(
        "--authentication-token-webhook-cache-ttl",
        metavar="DURATION",
        default="2m0s",
        help="how long the webhook's answers are cached (default: %(default)s)",
    )


def _add_front_proxy(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--requestheader-client-ca-file",
        metavar="PEM",
        help="certificate authority of front proxies, which pass the user in headers",
    )
    _add_list(group, "--requestheader-allowed-names", "NAME", "common name of a front proxy (default: any)")
    _add_list(group, "--requestheader-username-headers", "HEADER", "header with the user name (default: X-Remote-User)")
    _add_list(group, "--requestheader-uid-headers", "HEADER", "header with the uid (default: none)")
    _add_list(group, "--requestheader-group-headers", "HEADER", "header with a group (default: X-Remote-Group)")
    _add_list(
        group,
        "--requestheader-extra-headers-prefix",
        "PREFIX",
        "prefix of headers with extra values (default: X-Remote-Extra-)",
    )


def _add_list(group: argparse._ArgumentGroup, name: str, value: str, text: str) -> None:
    """Add an option that may be repeated and may have several values, separated by commas."""
    group.add_argument(name, metavar=value, action="append", default=[], help=f"{text}; may be repeated")


def _values(given: list[str]) -> tuple[str, ...]:
    return tuple(value for values in given for value in values.split(",") if value)


def _add_switch(group: argparse._ArgumentGroup, name: str, text: str, *, default: bool | None) -> None:
    """Add a boolean option in kube-apiserver's form: `--name`, `--name=false`. `default` None: unset, shown as true."""
    shown = str(default is not False).lower()
    group.add_argument(
        name, metavar="BOOL", type=boolean, nargs="?", const=True, default=default, help=f"{text} (default: {shown})"
    )


def _anonymous(options: argparse.Namespace) -> bool | None:
    """Return `--anonymous-auth`; as with kube-apiserver, the mode AlwaysAllow turns it off."""
    allowed: bool | None = options.anonymous_auth
    allows_all = any("AlwaysAllow" in modes.split(",") for modes in options.authorization_mode or ())
    if allows_all and allowed is not False and not options.authentication_config:
        _logger.warning("anonymous requests are not allowed with the authorization mode AlwaysAllow, rejecting them")
        return False
    return allowed


def settings(options: argparse.Namespace) -> AuthenticationSettings:
    from ostinato.server.access.authentication.settings import AuthenticationSettings  # noqa: PLC0415

    return AuthenticationSettings(
        token_file=_path(options.token_auth_file),
        bootstrap_tokens=options.enable_bootstrap_token_auth,
        audiences=_values(options.api_audiences),
        accounts=_accounts(options),
        config=_path(options.authentication_config),
        oidc=_oidc(options),
        webhook=_webhook(options),
        front_proxy=_front_proxy(options),
        anonymous=_anonymous(options),
        client_authority=_path(options.client_ca_file),
    )


def _oidc(options: argparse.Namespace) -> OidcSettings | None:
    from ostinato.server.access.authentication.settings import OidcSettings  # noqa: PLC0415

    if bool(options.oidc_issuer_url) != bool(options.oidc_client_id):
        raise CommandError("--oidc-issuer-url and --oidc-client-id must be specified together")
    if not options.oidc_issuer_url:
        return None
    required = []
    for pair in options.oidc_required_claim:
        claim, equals, value = pair.partition("=")
        if not equals:
            raise CommandError(f"--oidc-required-claim {pair}: want CLAIM=VALUE")
        required.append((claim.strip(), value.strip()))
    return OidcSettings(
        issuer_url=options.oidc_issuer_url,
        client_id=options.oidc_client_id,
        authority=_path(options.oidc_ca_file),
        username_claim=options.oidc_username_claim,
        username_prefix=options.oidc_username_prefix,
        groups_claim=options.oidc_groups_claim,
        groups_prefix=options.oidc_groups_prefix,
        required_claims=tuple(required),
        algorithms=_values(options.oidc_signing_algs) or ("RS256",),
    )


def _webhook(options: argparse.Namespace) -> TokenWebhookSettings | None:
    from ostinato.server.access.authentication.settings import TokenWebhookSettings  # noqa: PLC0415

    config = _path(options.authentication_token_webhook_config_file)
    if config is None:
        return None
    name = "--authentication-token-webhook-cache-ttl"
    return TokenWebhookSettings(
        config=config,
        version=options.authentication_token_webhook_version,
        cache_seconds=seconds(name, options.authentication_token_webhook_cache_ttl),
    )


def _front_proxy(options: argparse.Namespace) -> RequestHeaderSettings | None:
    from ostinato.server.access.authentication.settings import RequestHeaderSettings  # noqa: PLC0415

    authority = _path(options.requestheader_client_ca_file)
    if authority is None:
        return None
    return RequestHeaderSettings(
        authority=authority,
        allowed_names=_values(options.requestheader_allowed_names),
        username_headers=_values(options.requestheader_username_headers) or ("X-Remote-User",),
        uid_headers=_values(options.requestheader_uid_headers),
        group_headers=_values(options.requestheader_group_headers) or ("X-Remote-Group",),
        extra_prefixes=_values(options.requestheader_extra_headers_prefix) or ("X-Remote-Extra-",),
    )


def _accounts(options: argparse.Namespace) -> ServiceAccountSettings:
    from ostinato.server.access.authentication.settings import ServiceAccountSettings  # noqa: PLC0415

    issuers = options.service_account_issuer
    for place, issuer in enumerate(issuers):
        if not issuer:
            raise CommandError("--service-account-issuer must not be empty")
        if issuer in issuers[:place]:
            raise CommandError(f"--service-account-issuer {issuer}: duplicate value")
    jwks_uri = options.service_account_jwks_uri
    if jwks_uri and not jwks_uri.startswith("https://"):
        raise CommandError(f"--service-account-jwks-uri {jwks_uri}: want an https URL")
    longest = seconds("--service-account-max-token-expiration", options.service_account_max_token_expiration)
    if longest and not 3600 <= longest <= 1 << 32:
        raise CommandError("--service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
    return ServiceAccountSettings(
        issuers=tuple(issuers) or ServiceAccountSettings().issuers,
        signing_key=_path(options.service_account_signing_key_file),
        key_files=tuple(Path(file) for file in options.service_account_key_file),
        jwks_uri=jwks_uri,
        extend_expiration=options.service_account_extend_token_expiration,
        max_expiration=int(longest),
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
