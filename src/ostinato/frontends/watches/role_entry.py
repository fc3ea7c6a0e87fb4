"""Entries of `watches.yaml` with a role or playbook."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.frontends.roles.controller import RoleController
from ostinato.frontends.roles.options import DEFAULT_PERIOD, Content, RoleFinalizer, RoleOptions
from ostinato.frontends.watches.file import Entry, WatchOptions, field_error, period_of

_COLLECTIONS: Final = "/usr/share/ansible/collections"


class _Kind(msgspec.Struct, frozen=True):
    version: str
    kind: str
    group: str = ""


class _Finalizer(msgspec.Struct, frozen=True):
    name: str = ""
    role: str | None = None
    playbook: str | None = None
    vars: dict[str, Any] | None = None


class _RoleEntry(msgspec.Struct, frozen=True, rename="camel"):
    version: str
    kind: str
    group: str | None = None
    role: str | None = None
    playbook: str | None = None
    vars: dict[str, Any] | None = None
    max_runner_artifacts: int | None = None
    reconcile_period: str | None = None
    manage_status: bool | None = None
    watch_dependent_resources: bool | None = None
    watch_cluster_scoped_resources: bool | None = None
    watch_annotations_changes: bool | None = None
    snake_case_parameters: bool | None = None
    mark_unsafe: bool | None = None
    blacklist: list[_Kind] | None = None
    finalizer: _Finalizer | None = None
    selector: dict[str, Any] | None = None


def role_controller(entry: Entry, options: WatchOptions) -> RoleController:
    """Return the controller of an entry."""
    entry.warn_unknown(_RoleEntry.__struct_encode_fields__)
    try:
        parsed = msgspec.convert(entry.content, _RoleEntry)
    except msgspec.ValidationError as error:
        raise entry.error(field_error(error)) from None
    gvk = GroupVersionKind(parsed.group or "", parsed.version, parsed.kind)
    chosen = RoleOptions(
        vars=parsed.vars or {},
        finalizer=_finalizer(entry, parsed.finalizer),
        selector=parsed.selector,
        reconcile_period=period_of(entry, parsed.reconcile_period, options, DEFAULT_PERIOD),
        manage_status=parsed.manage_status is not False,
        watch_dependents=parsed.watch_dependent_resources is not False,
        watch_cluster_scoped=bool(parsed.watch_cluster_scoped_resources),
        watch_annotations=bool(parsed.watch_annotations_changes),
        blacklist=tuple(GroupVersionKind(each.group, each.version, each.kind) for each in parsed.blacklist or ()),
        snake_case=parsed.snake_case_parameters is not False,
        mark_unsafe=bool(parsed.mark_unsafe),
        max_artifacts=parsed.max_runner_artifacts or 20,
        verbosity=_of_kind(entry, "ANSIBLE_VERBOSITY", gvk, options.verbosity),
        workers=_of_kind(entry, "WORKER", gvk, options.workers or os.cpu_count() or 1),
    )
    content = Content.playbook(entry.path(parsed.playbook)) if parsed.playbook else _role(entry, parsed.role or "")
    try:
        return RoleController(
            gvk, content, chosen, artifacts=options.artifacts, definitions=options.definitions_of(gvk)
        )
    except ValueError as error:
        raise entry.error(str(error)) from None


def _finalizer(entry: Entry, given: _Finalizer | None) -> RoleFinalizer | None:
    if given is None:
        return None
    if not given.name:
        raise entry.error("finalizer: name: must not be empty")
    if not (given.role or given.playbook or given.vars):
        raise entry.error("finalizer: give a role, a playbook or vars")
    playbook = str(entry.path(given.playbook)) if given.playbook else ""
    role = "" if playbook or not given.role else str(_role(entry, given.role).path)
    try:
        return RoleFinalizer(name=given.name, role=role, playbook=playbook, vars=given.vars or {})
    except ValueError as error:
        raise entry.error(f"finalizer: {error}") from None


def _role(entry: Entry, name: str) -> Content:
    """Find a role as Ansible does: a path, a role of a collection, of ANSIBLE_ROLES_PATH, or in `roles`."""
    candidates = [Path(name)] if Path(name).is_absolute() else []
    parts = name.split(".")
    if len(parts) == 3 and "/" not in name:
        home = f"{_COLLECTIONS}:{Path.home() / '.ansible/collections'}"
        roots = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or home
        candidates += [
            Path(root, "ansible_collections", parts[0], parts[1], "roles", parts[2]) for root in roots.split(":")
        ]
    for root in filter(None, os.environ.get("ANSIBLE_ROLES_PATH", "").split(":")):
        candidates += [Path(root, name), Path(root, "roles", name)]
    candidates += [entry.path(f"roles/{name}"), entry.path(name)]
    return Content.role(next((each for each in candidates if each.is_dir()), candidates[-2]))


def _of_kind(entry: Entry, prefix: str, gvk: GroupVersionKind, default: int) -> int:
    """Return a number from the variable of a kind, such as WORKER_MEMCACHED_CACHE_EXAMPLE_COM."""
    name = f"{prefix}_{gvk.kind}_{gvk.group}".replace(".", "_").upper()
    given = os.environ.get(name, "")
    if not given:
        return default
    if not given.isdecimal() or (prefix == "WORKER" and not int(given)):
        raise entry.error(f"environment variable {name}: {given!r} is not a number")
    return min(int(given), 7) if prefix == "ANSIBLE_VERBOSITY" else int(given)
