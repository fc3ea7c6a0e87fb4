"""`ostinato manifests`: CustomResourceDefinitions, RBAC roles and webhook configurations of a program.

- Roles grant access to the kinds that controllers watch and own, the declared access (`access`, `Builder.needs`),
  events, the Lease of leader election, and what webhooks with self-signed certificates need.
- Nothing is written if an API server would reject a definition (`program/validation.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import find, load_all
from ostinato.cli.program.program import Program, definitions_of, program_of
from ostinato.cli.program.targets import targets
from ostinato.cli.program.validation import validate_definition
from ostinato.controllers.sources.namespace_patterns import is_pattern
from ostinato.crd import check_manifests, manifest_files, roles_of, write_manifests
from ostinato.crd.program import access_of_managers
from ostinato.manager import MetricsOptions
from ostinato.manager.hosting import Choices, Host

Json = dict[str, Any]


class ManifestsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato manifests --help`."""

    files: Sequence[str]
    output: str | None = None
    check: bool = False
    name: str = ""
    account: str = ""
    namespace: str = ""
    leader_election: str = ""
    metrics_secure: bool = False
    sharding: str = ""


def manifests(options: ManifestsOptions) -> int:
    """Write, print or check the manifests; return the exit code: 1 if a check finds differences."""
    if options.check and options.output is None:
        raise CommandError("--check needs --output DIR, the directory to compare with")
    options = msgspec.structs.replace(options, files=targets(options.files))
    files = _files(options)
    if options.output is None:
        sys.stdout.write("---\n".join(text for _, text in sorted(files.items())))
        return 0
    directory = Path(options.output)
    if options.check:
        problems = check_manifests(files, directory)
        sys.stdout.write("".join(problems))
        if problems:
            sys.stderr.write(f"ostinato manifests: {directory} is out of date; run the command without --check\n")
        return 1 if problems else 0
    try:
        for name in write_manifests(files, directory):
            sys.stdout.write(f"{directory / name}\n")
    except OSError as error:
        raise CommandError(f"cannot write {error.filename or directory}: {error.strerror}") from None
    return 0


def _files(options: ManifestsOptions) -> dict[str, str]:
    if is_pattern(options.namespace):
        raise CommandError(
            f"--namespace {options.namespace}: a Role cannot have a pattern; leave --namespace out for a ClusterRole"
        )
    metrics = MetricsOptions(":8443") if options.metrics_secure else ""  # for its permissions
    election, sharding = options.leader_election or None, options.sharding or None
    choices = Choices(leader_election=election, sharding=sharding, metrics=metrics)
    host = Host(choices=choices, namespace=options.namespace)
    program = program_of(load_all([find(each) for each in options.files], host), host, empty=True)
    definitions = definitions_of(program)
    for definition in definitions:
        validate_definition(definition)
    files = manifest_files(
        definitions=definitions,
        roles=_roles(program, options) if program.runnables else (),
        webhooks=[each for webhooks in program.webhooks for each in webhooks.configurations()],
    )
    if not files:
        raise CommandError(f"{', '.join(options.files)}: nothing to write; found no kind, controller or webhook")
    return files


def _roles(program: Program, options: ManifestsOptions) -> list[Json]:
    name = options.name or Path(options.files[0]).stem.rpartition(".")[2].replace("_", "-").lower()
    account = _account(options.account, name)
    rules = access_of_managers(program.managers, namespace=options.namespace or account.namespace)
    metadata = {"name": account.name, "namespace": account.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *roles_of(rules, name=name, service_account=account),
    ]


def _account(text: str, name: str) -> NamespacedName:
    namespace, slash, account = text.rpartition("/")
    if text and (not slash or not namespace or not account):
        raise CommandError(f"--account {text}: want NAMESPACE/NAME")
    return NamespacedName(namespace, account) if text else NamespacedName("default", name)
