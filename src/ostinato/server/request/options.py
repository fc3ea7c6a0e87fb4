"""Options: query parameters and option bodies of each verb, parsed and validated as kube-apiserver does.

The first value of a repeated parameter counts, except for `dryRun`. A parameter with an empty value is set: it is not a
valid number, and a true flag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from ostinato.api.errors import BadRequest, Invalid
from ostinato.api.gvk import GroupKind
from ostinato.api.selectors import fields, labels
from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.request import SHORT_QUERY, Request, parameters

_GROUP = "meta.k8s.io"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MATCH = Path("resourceVersionMatch")
_POLICIES = ("Foreground", "Background", "Orphan")


class ListOptions(msgspec.Struct, frozen=True):
    label_selector: labels.Selector
    field_selector: fields.Selector
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_: str = ""
    watch: bool = False
    timeout_seconds: int | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None


class WriteOptions(msgspec.Struct, frozen=True):
    """Options of create, update, patch and apply."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None


class DeleteOptions(msgspec.Struct, frozen=True):
    grace: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str | None = None
    orphan_dependents: bool | None = None
    dry_run: bool = False


def integer(text: str) -> int:
    """Parse a number as Go's strconv.ParseInt does."""
    if not _INTEGER.fullmatch(text):
        raise BadRequest.of(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text) if len(text) <= 20 else 1 << 63
    if not -(1 << 63) <= number < 1 << 63:
        raise BadRequest.of(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def boolean(text: str) -> bool:
    """Parse a flag that is set: all values but "0" and "false" are true."""
    return text != "0" and text.lower() != "false"


def _integer(request: Request, name: str) -> int | None:
    values = request.query.get(name)
    return integer(values[0]) if values else None


def _boolean(request: Request, name: str) -> bool | None:
    values = request.query.get(name)
    return boolean(values[0]) if values else None


def refuse_dry_run(request: Request) -> None:
    """Reject a dry run of a connect request with BadRequest."""
    if request.query_string and "dryRun" in request.query:
        raise BadRequest.of("dryRun is not supported")


def list_options(request: Request) -> ListOptions:
    if not request.query_string:
        return _PLAIN_LIST
    get = request.parameter
    try:
        label_selector = labels.parse(get("labelSelector"))
        field_selector = fields.parse(get("fieldSelector"))
    except ValueError as error:
        raise BadRequest.of(str(error)) from error
    version, match = get("resourceVersion"), get("resourceVersionMatch")
    watch, initial = _boolean(request, "watch") or False, _boolean(request, "sendInitialEvents")
    if watch and initial is None and not match and version in ("", "0"):
        match, initial = "NotOlderThan", True  # a watch from any version begins with the current state
    return ListOptions(
        label_selector=label_selector,
        field_selector=field_selector,
        resource_version=version,
        match=match,
        limit=_integer(request, "limit") or 0,
        continue_=get("continue"),
        watch=watch,
        timeout_seconds=_integer(request, "timeoutSeconds"),
        bookmarks=_boolean(request, "allowWatchBookmarks") or False,
        send_initial_events=initial,
    )


_PLAIN_LIST = ListOptions(labels.everything(), fields.everything())


def check_list_options(options: ListOptions, *, watch: bool) -> None:
    """Reject invalid combinations of list options."""
    faults = _watch_faults(options) if watch else _list_faults(options)
    if faults:
        raise Invalid.of(GroupKind(_GROUP, "ListOptions"), "", faults)


def _list_faults(options: ListOptions) -> list[FieldError]:
    faults: list[FieldError] = []
    if options.match:
        if not options.resource_version:
            faults.append(
                FieldError.forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if options.continue_:
            faults.append(_match_with_continue())
        if options.match not in ("Exact", "NotOlderThan"):
            faults.append(FieldError.not_supported(_MATCH, options.match, ["Exact", "NotOlderThan", ""]))
        if options.match == "Exact" and options.resource_version == "0":
            faults.append(
                FieldError.forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if options.send_initial_events is not None:
        faults.append(FieldError.forbidden(Path("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
    return faults


def _watch_faults(options: ListOptions) -> list[FieldError]:
    faults: list[FieldError] = []
    if options.send_initial_events is not None and options.match != "NotOlderThan":
        faults.append(
            FieldError.forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
    if options.match:
        if options.send_initial_events is None:
            faults.append(
                FieldError.forbidden(
                    _MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                )
            )
        if options.match != "NotOlderThan":
            faults.append(FieldError.not_supported(_MATCH, options.match, ["NotOlderThan"]))
        if options.continue_:
            faults.append(_match_with_continue())
    return faults


def _match_with_continue() -> FieldError:
    return FieldError.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def write_options(request: Request, kind: str) -> WriteOptions:
    """Parse CreateOptions, UpdateOptions or PatchOptions; `force` is validated by patch."""
    query_string = request.query_string
    if not query_string:
        return _PLAIN_WRITE
    return (_cached_options if len(query_string) <= SHORT_QUERY else _write_options)(query_string, kind)


def _write_options(query_string: str, kind: str) -> WriteOptions:
    query = parameters(query_string)
    manager, validation = (query.get(name, ("",))[0] for name in ("fieldManager", "fieldValidation"))
    dry_run, force = query.get("dryRun", []), query.get("force")
    faults = names.validate_field_manager(manager, Path("fieldManager"))
    faults += _dry_run_faults(dry_run)
    if validation not in ("", "Ignore", "Warn", "Strict"):
        faults.append(FieldError.not_supported(Path("fieldValidation"), validation, ["", "Ignore", "Strict", "Warn"]))
    if faults:
        raise Invalid.of(GroupKind(_GROUP, kind), "", faults)
    return WriteOptions(bool(dry_run), manager, validation or "Warn", boolean(force[0]) if force else None)


_PLAIN_WRITE = WriteOptions()
_cached_options = lru_cache(maxsize=1024)(_write_options)  # clients repeat the same options


def _dry_run_faults(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [FieldError.not_supported(Path("dryRun"), values, ["All"])]


def delete_options(request: Request, body: dict[str, Any] | None) -> DeleteOptions:
    """Parse and validate DeleteOptions from the body, or from the query without a body."""
    options, faults = read_delete_options(request, body)
    if faults:
        raise Invalid.of(GroupKind(_GROUP, "DeleteOptions"), "", faults)
    return options


def read_delete_options(request: Request, body: dict[str, Any] | None) -> tuple[DeleteOptions, list[FieldError]]:
    """DeleteOptions, and their validation errors."""
    if body is None:
        if not request.query_string:
            return _PLAIN_DELETE, []
        body = {
            "gracePeriodSeconds": _integer(request, "gracePeriodSeconds"),
            "propagationPolicy": request.query.get("propagationPolicy", [None])[0],
            "orphanDependents": _boolean(request, "orphanDependents"),
            "dryRun": request.query.get("dryRun"),
        }
    propagation, orphan_dependents = body.get("propagationPolicy"), body.get("orphanDependents")
    dry_run = body.get("dryRun") or []
    faults: list[FieldError] = []
    if propagation is not None and orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(FieldError.invalid(Path("propagationPolicy"), propagation, text))
    if propagation is not None and propagation not in _POLICIES:
        faults.append(FieldError.not_supported(Path("propagationPolicy"), propagation, [*_POLICIES, "nil"]))
    faults += _dry_run_faults(dry_run)
    preconditions = body.get("preconditions") or {}
    options = DeleteOptions(
        grace=body.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation=propagation,
        orphan_dependents=orphan_dependents,
        dry_run=bool(dry_run),
    )
    return options, faults


_PLAIN_DELETE = DeleteOptions()
