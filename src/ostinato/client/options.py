"""Options of requests: keyword arguments of the client's methods, and their encoding in query and body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.meta import DeleteOptions, LabelSelector, Preconditions
from ostinato.api.selectors import fields as field_selectors
from ostinato.api.selectors import labels as label_selectors

FieldValidation = Literal["Strict", "Warn", "Ignore"]
Propagation = Literal["Background", "Foreground", "Orphan"]
LabelSelection = str | Mapping[str, str] | label_selectors.Selector | LabelSelector | None
FieldSelection = str | Mapping[str, str] | field_selectors.Selector | None
Query = list[tuple[str, str]]


class CreateOptions(TypedDict, total=False):
    """
    - `dry_run`: admit and validate the request without storing it. Defaults to False.
    - `field_manager`: the field manager that owns the written fields. Defaults to the client's.
    - `field_validation`: how the server treats unknown fields. Defaults to the client's.
    - `timeout`: seconds for the request. Defaults to the transport's.
    """

    dry_run: bool
    field_manager: str
    field_validation: FieldValidation
    timeout: float | None


class WriteOptions(CreateOptions, total=False):
    """Those of `CreateOptions`, and:

    - `subresource`: the subresource to write, e.g. `"status"`. Defaults to the object.
    """

    subresource: str


class ReadOptions(TypedDict, total=False):
    """
    - `namespace`: of an object given by its name only. Defaults to the client's.
    - `subresource`: the subresource to read. Defaults to the object.
    - `resource_version`: "0" accepts any state in the server's watch cache, another one a state that is not older.
      Defaults to the latest state.
    - `timeout`: seconds for the request. Defaults to the transport's.
    """

    namespace: str
    subresource: str
    resource_version: str
    timeout: float | None


class DeletionOptions(TypedDict, total=False):
    """
    - `propagation`: propagation policy for dependents. Defaults to the kind's.
    - `grace_period`: seconds that a Pod has to terminate. Defaults to the Pod's.
    - `uid`, `resource_version`: preconditions; Conflict if the object has another. Default to none.
    - `dry_run`: admit and validate the request without deleting. Defaults to False.
    - `timeout`: seconds for the request. Defaults to the transport's.
    """

    propagation: Propagation
    grace_period: int
    uid: str
    resource_version: str
    dry_run: bool
    timeout: float | None


_CREATE_OPTIONS = frozenset(CreateOptions.__annotations__)
_WRITE_OPTIONS = frozenset(WriteOptions.__annotations__)
_READ_OPTIONS = frozenset(ReadOptions.__annotations__)
_DELETION_OPTIONS = frozenset(DeletionOptions.__annotations__)


def create_query(options: CreateOptions) -> Query:
    _check_names(options, _CREATE_OPTIONS)
    return _writing(options)


def write_query(options: WriteOptions) -> Query:
    _check_names(options, _WRITE_OPTIONS)
    return _writing(options)


def _writing(options: CreateOptions) -> Query:
    query: Query = []
    if options.get("dry_run"):
        query.append(("dryRun", "All"))
    if manager := options.get("field_manager"):
        query.append(("fieldManager", manager))
    if validation := options.get("field_validation"):
        query.append(("fieldValidation", validation))
    return query


def read_query(options: ReadOptions) -> Query:
    _check_names(options, _READ_OPTIONS)
    version = options.get("resource_version")
    return [("resourceVersion", version)] if version else []


def deletion_body(options: DeletionOptions) -> bytes:
    """Encode DeleteOptions; b"" if all are default."""
    _check_names(options, _DELETION_OPTIONS)
    body = DeleteOptions(
        dry_run=["All"] if options.get("dry_run") else [],
        grace_period_seconds=options.get("grace_period"),
        propagation_policy=options.get("propagation"),
    )
    conditions = Preconditions(uid=options.get("uid") or None, resource_version=options.get("resource_version") or None)
    if conditions != Preconditions():
        body.preconditions = conditions
    if body == DeleteOptions():
        return b""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **to_dict(body)})


def selection_query(labels: LabelSelection, fields: FieldSelection) -> Query:
    """Encode selectors. Raises ValueError for an invalid selector, and for one that matches nothing."""
    query: Query = []
    if text := _label_text(labels):
        query.append(("labelSelector", text))
    if text := _field_text(fields):
        query.append(("fieldSelector", text))
    return query


def _label_text(labels: LabelSelection) -> str:
    if labels is None or labels == "":
        return ""
    selector: label_selectors.Selector
    if isinstance(labels, str):
        try:
            selector = label_selectors.parse(labels)
        except label_selectors.SelectorError as error:
            raise label_selectors.SelectorError(f"labels {labels!r}: {error}") from None
    elif isinstance(labels, label_selectors.Selector):
        selector = labels
    elif isinstance(labels, LabelSelector):
        selector = label_selectors.from_label_selector(to_dict(labels))
    else:  # validated: a comma in a value would be parsed as another requirement
        selector = label_selectors.from_label_selector({"matchLabels": labels})
    return _text_of(selector)


def _field_text(fields: FieldSelection) -> str:
    if fields is None or fields == "":
        return ""
    if isinstance(fields, str):
        return str(field_selectors.parse(fields))
    if isinstance(fields, Mapping):
        return str(field_selectors.from_set(fields))
    return _text_of(fields)


def _text_of(selector: label_selectors.Selector | field_selectors.Selector) -> str:
    if selector.selects_nothing:  # its text is empty, with which the server would select everything
        raise ValueError("the selector matches nothing; omit the request")
    return str(selector)


def _check_names(given: Mapping[str, object], known: frozenset[str]) -> None:
    if not known.issuperset(given):
        raise TypeError(f"unknown option {min(given.keys() - known)!r}; use one of {', '.join(sorted(known))}")
