"""`ostinato manifests`: CustomResourceDefinitions, RBAC roles and webhook configurations of a program.

- Roles grant access to the kinds that controllers watch and own, the declared access (`access`, `Builder.needs`),
  events, the Lease of leader election, and what webhooks with self-signed certificates need.
- Nothing is written if an API server would reject a definition (`program/validation.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import find, load_all
from ostinato.cli.program.program import Program, controllers_of, definitions_of, kind_sources, program_of
from ostinato.cli.program.targets import targets
from ostinato.cli.program.validation import validate_definition
from ostinato.client.views import view_of
from ostinato.controllers.controller import Controller
from ostinato.controllers.decorator import ControllerFunction
from ostinato.crd import (
    Access,
    access_of,
    certificate_access,
    check_manifests,
    event_access,
    event_namespaces,
    leader_election_access,
    manifest_files,
    roles_of,
    write_manifests,
)
from ostinato.manager.hosting import Choices, Host
from ostinato.manager.manager import Manager

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
    host = Host(choices=Choices(leader_election=options.leader_election or None), namespace=options.namespace)
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
    rules: list[Access] = []
    for webhooks in program.webhooks:
        rules += certificate_access(webhooks)
    for manager in program.managers:
        about = {*manager.caches.defaults.namespaces}
        for controller in controllers_of(manager):
            where = partial(_namespaces, manager, controller)
            rules += access_of(controller, where=where)
            about |= event_namespaces([controller], where)
        if (election := manager.leader_election) is not None:
            lease = election.namespace or options.namespace or account.namespace  # the same choice as Manager's
            rules += leader_election_access(NamespacedName(lease, election.name))
            about.add(lease)
        for namespace in {""} if "" in about else about:
            rules += [event_access(namespace, core=core) for core in {False, manager.reporting.core_events}]
    metadata = {"name": account.name, "namespace": account.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *roles_of(rules, name=name, service_account=account),
    ]


def _namespaces(manager: Manager, controller: ControllerFunction | Controller, kind: Any) -> Iterable[str]:
    """Return the namespaces in which a controller watches a kind: its own setting, or that of the manager's caches."""
    own = [each.options.settings for each in kind_sources(controller) if each.view.gvk == view_of(kind).gvk]
    watched = [settings or manager.caches.of(kind) for settings in own or (None,)]
    return {namespace for settings in watched for namespace in settings.namespaces}


def _account(text: str, name: str) -> NamespacedName:
    namespace, slash, account = text.rpartition("/")
    if text and (not slash or not namespace or not account):
        raise CommandError(f"--account {text}: want NAMESPACE/NAME")
    return NamespacedName(namespace, account) if text else NamespacedName("default", name)
