"""Options: the query parameters and option bodies of each verb, read and checked as kube-apiserver does."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ostinato.api import fields, labels, names
from ostinato.api.errors import BadRequest, Invalid
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.gvk import GroupKind
from ostinato.api.quoting import quote
from ostinato.server.request import Request

_LIST_OPTIONS = GroupKind("meta.k8s.io", "ListOptions")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER = re.compile(r"[+-]?[0-9]+")


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
    """Of create, update, patch and apply."""

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
    """A number as Go's strconv.ParseInt reads it."""
    if not _INTEGER.fullmatch(text):
        raise BadRequest.of(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise BadRequest.of(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def boolean(text: str) -> bool:
    """A query flag: absent, "0" and "false" are false, anything else is true."""
    return bool(text) and text.lower() not in ("0", "false")


def list_options(request: Request) -> ListOptions:
    query = request.query
    if not query:
        return _PLAIN_LIST
    get = request.parameter
    try:
        label_selector = labels.parse(get("labelSelector"))
        field_selector = fields.parse(get("fieldSelector"))
    except ValueError as error:
        raise BadRequest.of(str(error)) from error
    initial = get("sendInitialEvents") if "sendInitialEvents" in query else None
    timeout = get("timeoutSeconds")
    limit = get("limit")
    return ListOptions(
        label_selector=label_selector,
        field_selector=field_selector,
        resource_version=get("resourceVersion"),
        match=get("resourceVersionMatch"),
        limit=integer(limit) if limit else 0,
        continue_=get("continue"),
        watch=boolean(get("watch")),
        timeout_seconds=integer(timeout) if timeout else None,
        bookmarks=boolean(get("allowWatchBookmarks")),
        send_initial_events=None if initial is None else boolean(initial),
    )


_PLAIN_LIST = ListOptions(labels.everything(), fields.everything())


def check_list_options(options: ListOptions, *, watch: bool) -> None:
    """Refuse combinations that mean nothing."""
    match = Path("resourceVersionMatch")
    faults: list[FieldError] = []
    if options.send_initial_events is not None and not watch:
        faults.append(FieldError.forbidden(Path("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
    if watch and options.send_initial_events is not None:
        faults += _check_initial_events(options)
    elif options.match:
        if not options.resource_version:
            faults.append(
                FieldError.forbidden(match, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if options.continue_:
            faults.append(FieldError.forbidden(match, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            faults.append(FieldError.not_supported(match, options.match, ["Exact", "NotOlderThan", ""]))
        if options.match == "Exact" and options.resource_version == "0":
            faults.append(
                FieldError.forbidden(match, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
        if watch:
            faults = [
                FieldError.forbidden(
                    match, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                )
            ]
    if faults:
        raise Invalid.of(_LIST_OPTIONS, "", faults)


def _check_initial_events(options: ListOptions) -> list[FieldError]:
    match = Path("resourceVersionMatch")
    faults = []
    if options.match != "NotOlderThan":
        faults.append(
            FieldError.forbidden(match, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
    if options.match and options.match != "NotOlderThan":
        faults.append(FieldError.not_supported(match, options.match, ["NotOlderThan"]))
    if options.continue_:
        faults.append(FieldError.forbidden(match, "resourceVersionMatch is forbidden when continue is provided"))
    if options.limit:
        faults.append(FieldError.forbidden(Path("limit"), "limit is forbidden when sendInitialEvents is provided"))
    return faults


def write_options(request: Request, kind: str) -> WriteOptions:
    """Of CreateOptions, UpdateOptions or PatchOptions."""
    if not request.query_string:
        return _PLAIN_WRITE
    get = request.parameter
    faults: list[FieldError] = []
    dry_run = request.query.get("dryRun", [])
    if any(value != "All" for value in dry_run):
        faults.append(FieldError.not_supported(Path("dryRun"), dry_run, ["All"]))
    manager = get("fieldManager")
    faults += names.validate_field_manager(manager, Path("fieldManager"))
    validation = get("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        faults.append(FieldError.not_supported(Path("fieldValidation"), validation, ["", "Ignore", "Strict", "Warn"]))
    if faults:
        raise Invalid.of(GroupKind("meta.k8s.io", kind), "", faults)
    force = get("force") if "force" in request.query else None
    return WriteOptions(bool(dry_run), manager, validation, None if force is None else boolean(force))


_PLAIN_WRITE = WriteOptions()


def delete_options(request: Request, body: dict[str, Any] | None) -> DeleteOptions:
    """From the body, or from the query where there is none."""
    if body is None:
        get, query = request.parameter, request.query
        grace = get("gracePeriodSeconds")
        orphan = get("orphanDependents") if "orphanDependents" in query else None
        body = {
            "gracePeriodSeconds": integer(grace) if grace else None,
            "propagationPolicy": get("propagationPolicy") or None,
            "orphanDependents": None if orphan is None else boolean(orphan),
            "dryRun": query.get("dryRun"),
        }
    faults: list[FieldError] = []
    propagation, orphan_dependents = body.get("propagationPolicy"), body.get("orphanDependents")
    if propagation is not None and orphan_dependents is not None:
        faults.append(
            FieldError.invalid(
                Path("propagationPolicy"),
                propagation,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    if propagation is not None and propagation not in ("Foreground", "Background", "Orphan"):
        faults.append(
            FieldError.not_supported(
                Path("propagationPolicy"), propagation, ["Foreground", "Background", "Orphan", "nil"]
            )
        )
    dry_run = body.get("dryRun") or []
    if any(value != "All" for value in dry_run):
        faults.append(FieldError.not_supported(Path("dryRun"), dry_run, ["All"]))
    if faults:
        raise Invalid.of(GroupKind("meta.k8s.io", "DeleteOptions"), "", faults)
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        grace=body.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation=propagation,
        orphan_dependents=orphan_dependents,
        dry_run=bool(dry_run),
    )
