"""`ostinato hooks`: run a directory of hooks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ostinato.cli.commands.run import RunOptions, run_front_end
from ostinato.cli.error import CommandError
from ostinato.frontends.hooks import Hooks, HooksOptions, WebhookOptions
from ostinato.webhook.configuration import Endpoint, ServiceEndpoint, UrlEndpoint


class HooksCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato hooks --help`."""

    directory: str | None = None
    reload: bool = False
    strict: bool = False
    webhook_service: str = ""
    webhook_url: str = ""
    webhook_port: int = 9680
    webhook_name: str = "ostinato-hooks"
    log_proxy_hook_json: bool = False
    keep_tmp_files: bool = False
    tmp_dir: str = ""


def hooks(options: HooksCommand, run: Mapping[str, Any]) -> None:
    """Run until SIGTERM or SIGINT. `run`: the arguments that it has in common with `ostinato run`."""
    directory = Path(options.directory or os.environ.get("SHELL_OPERATOR_HOOKS_DIR") or "hooks")
    if not directory.is_dir():
        raise CommandError(f"{directory}: no such directory; name the directory of the hooks")
    common = RunOptions(files=[str(directory)], **run)
    settings = HooksOptions(
        reload=options.reload,
        strict=options.strict,
        proxy_json=options.log_proxy_hook_json,
        keep_files=options.keep_tmp_files,
        temporary=options.tmp_dir,
        webhooks=WebhookOptions(
            endpoint=_endpoint(options),
            port=options.webhook_port,
            certificates=common.webhook_certificates,
            name=options.webhook_name,
        ),
    )
    run_front_end(common, lambda: [Hooks(directory, options=settings)])


def _endpoint(options: HooksCommand) -> Endpoint | None:
    if options.webhook_service and options.webhook_url:
        raise CommandError("--webhook-service and --webhook-url exclude each other; give one of them")
    if options.webhook_service:
        namespace, slash, name = options.webhook_service.partition("/")
        if not slash or not namespace or not name:
            raise CommandError(f"--webhook-service {options.webhook_service}: use NAMESPACE/NAME")
        return ServiceEndpoint(namespace, name)
    if options.webhook_url:
        try:
            return UrlEndpoint(options.webhook_url)
        except ValueError as error:
            raise CommandError(f"--webhook-url: {error}") from None
    return None
