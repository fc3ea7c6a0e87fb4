"""Authorization options, with kube-apiserver's names."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ostinato.cli.error import CommandError
from ostinato.cli.options.server.values import seconds

if TYPE_CHECKING:
    from ostinato.server.access.authorization.configuration import AuthorizationWebhookSettings, Configured
    from ostinato.server.access.authorization.modes import AuthorizationSettings

_MODES = ("AlwaysAllow", "AlwaysDeny", "Webhook", "RBAC", "Node")


def add_to(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--authorization-mode",
        metavar="MODE,MODE",
        action="append",
        help=f"authorizers in order of evaluation, from {', '.join(_MODES)}; may be repeated (default: Node,RBAC)",
    )
    group.add_argument(
        "--authorization-config",
        metavar="FILE",
        help="AuthorizationConfiguration file, instead of the other authorization options; reloaded when it changes",
    )
    group.add_argument(
        "--authorization-webhook-config-file",
        metavar="KUBECONFIG",
        help="kubeconfig of the authorization webhook, for the mode Webhook",
    )
    group.add_argument(
        "--authorization-webhook-version",
        metavar="v1|v1beta1",
        help="version of the SubjectAccessReviews sent to the webhook (default: v1beta1)",
    )
    for answers, default in (("authorized", "5m0s"), ("unauthorized", "30s")):
        group.add_argument(
            f"--authorization-webhook-cache-{answers}-ttl",
            metavar="DURATION",
            help=f"how long '{answers}' decisions of the webhook are cached (default: {default})",
        )


def settings(options: argparse.Namespace) -> AuthorizationSettings:
    """Return the checked options; CommandError names the invalid option."""
    from ostinato.server.access.authorization.configuration import ConfigurationError, load  # noqa: PLC0415
    from ostinato.server.access.authorization.modes import AuthorizationSettings  # noqa: PLC0415

    webhook = [name for name in vars(options) if name.startswith("authorization_webhook_") and vars(options)[name]]
    if options.authorization_config is None:
        return AuthorizationSettings(chain=_chain(options))
    if options.authorization_mode or webhook:
        raise CommandError(
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* "
            "flags are defined"
        )
    file = Path(options.authorization_config)
    try:
        return AuthorizationSettings(chain=load(file), file=file)
    except ConfigurationError as error:
        raise CommandError(f"--authorization-config {file}: {error}") from None


def _chain(options: argparse.Namespace) -> tuple[Configured, ...]:
    from ostinato.server.access.authorization.configuration import Configured  # noqa: PLC0415

    modes = ",".join(options.authorization_mode or ["Node,RBAC"]).split(",")
    for mode in modes:
        if mode not in _MODES:
            raise CommandError(f'authorization-mode "{mode}" is not a valid mode; want of {", ".join(_MODES)}')
    if len(set(modes)) < len(modes):
        raise CommandError(f"authorization-mode {modes} has mode specified more than once")
    if options.authorization_webhook_config_file and "Webhook" not in modes:
        raise CommandError("cannot specify --authorization-webhook-config-file without mode Webhook")
    return tuple(
        Configured("Webhook", "default", _webhook(options)) if mode == "Webhook" else Configured(mode, mode.lower())
        for mode in modes
    )


def _webhook(options: argparse.Namespace) -> AuthorizationWebhookSettings:
    from ostinato.server.access.authorization.configuration import AuthorizationWebhookSettings  # noqa: PLC0415

    if not options.authorization_webhook_config_file:
        raise CommandError("authorization-mode Webhook's authorization config file not passed")
    version = options.authorization_webhook_version or "v1beta1"
    if version not in ("v1", "v1beta1"):
        raise CommandError(
            f'unsupported webhook authorizer version "{version}", supported versions are "v1", "v1beta1"'
        )
    return AuthorizationWebhookSettings(
        kubeconfig=Path(options.authorization_webhook_config_file),
        authorized_ttl=_seconds(options, "authorized", 300.0),
        unauthorized_ttl=_seconds(options, "unauthorized", 30.0),
        version=version,
    )


def _seconds(options: argparse.Namespace, answers: str, default: float) -> float:
    text = vars(options)[f"authorization_webhook_cache_{answers}_ttl"]
    return default if text is None else seconds(f"--authorization-webhook-cache-{answers}-ttl", text)
