"""What a loaded program needs in a cluster, for its packages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ostinato.cli.program.loading import find, load_all
from ostinato.cli.program.program import Program, definitions_of, program_of
from ostinato.cli.program.validation import validate_definition
from ostinato.client.views import view_of
from ostinato.controllers.kinds.selector import KindsOf
from ostinato.crd import certificate_access
from ostinato.crd.program import access_of_managers
from ostinato.manager.hosting import Host
from ostinato.packaging import OWN_NAMESPACE, Operator, WebhookServer
from ostinato.webhook.webhooks import Webhooks


def load_program(files: Sequence[str], *, namespaced: bool) -> Program:
    """Load files and modules as one program. `namespaced`: it will watch only the namespace in which it runs."""
    host = Host(namespace=OWN_NAMESPACE if namespaced else "")
    return program_of(load_all([find(each) for each in files], host), host)


def operator_of(program: Program, files: Sequence[str]) -> Operator:
    """Return the requirements of a program that was loaded from `files`."""
    definitions = definitions_of(program)
    for definition in definitions:
        validate_definition(definition)
    leases = {each.leader_election.name for each in program.managers if each.leader_election is not None}
    rules = access_of_managers(program.managers, namespace=OWN_NAMESPACE)
    certificate_rules = [rule for each in program.webhooks for rule in certificate_access(each)]
    return Operator(
        program=[os.path.relpath(each) if os.path.isabs(each) else each for each in files],
        definitions=definitions,
        owned=_owned(program),
        rules=[each for each in rules if each not in certificate_rules],
        certificate_rules=certificate_rules,
        lease=min(leases, default=""),
        webhooks=[_server(each) for each in program.webhooks],
    )


def _owned(program: Program) -> dict[str, Sequence[tuple[str, str]]]:
    """Return the kinds that the controllers of each reconciled kind create."""
    found: dict[str, set[tuple[str, str]]] = {}
    for controller in program.controllers:
        kinds = {(gvk.api_version, gvk.kind) for gvk in (view_of(kind).gvk for kind in controller.owns)}
        for kind in controller.reconciles:
            info = None if isinstance(kind, KindsOf) else _info(kind)
            if info is not None:
                found.setdefault(f"{info.plural}.{info.gvk.group}", set()).update(kinds)
    return {name: sorted(kinds) for name, kinds in sorted(found.items())}


def _info(kind: Any) -> Any:
    return view_of(kind).info


def _server(webhooks: Webhooks) -> WebhookServer:
    return WebhookServer(
        name=webhooks.name,
        endpoint=webhooks.endpoint,
        port=webhooks.port,
        configurations=webhooks.configurations(),
        definitions=webhooks.definitions,
        certificates=webhooks.certificate_directory,
    )
