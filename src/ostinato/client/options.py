"""Options: what can be body of a request besides the object it is about, and how it is written in the URL.

They are keyword arguments of the client's methods, the same names everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

import msgspec

from ostinato.api import fields as field_selectors
from ostinato.api import labels as label_selectors
from ostinato.api.codec import to_dict
from ostinato.api.meta import DeleteOptions, LabelSelector, Preconditions

FieldValidation = Literal["Strict", "Warn", "Ignore"]
Propagation = Literal["Background", "Foreground", "Orphan"]
LabelSelection = str | Mapping[str, str] | label_selectors.Selector | LabelSelector | None
FieldSelection = str | Mapping[str, str] | field_selectors.Selector | None
Query = list[tuple[str, str]]


class CreateOptions(TypedDict, total=False):
    """
    - `dry_run`: check everything and store nothing. Defaults to False.
    - `field_manager`: who is to own the fields. Defaults to the client's.
    - `field_validation`: what the server does about unknown fields. Defaults to the client's.
    - `timeout`: seconds for the request. Defaults to the transport's.
    """

    dry_run: bool
    field_manager: str
    field_validation: FieldValidation
    timeout: float | None


class WriteOptions(CreateOptions, total=False):
    """Those of `CreateOptions`, and:

    - `subresource`: write this part alone: `"status"`. Defaults to the object.
    """

    subresource: str


class ReadOptions(TypedDict, total=False):
    """
    - `namespace`: of an object that is given by its name alone. Defaults to the client's.
    - `subresource`: read this part. Defaults to the object.
    - `resource_version`: "0" is content with what the server has at hand, which may be old; a number with what is not
      older than that. Defaults to the most recent.
    - `timeout`: seconds for the request. Defaults to the transport's.
    """

    namespace: str
    subresource: str
    resource_version: str
    timeout: float | None


class DeletionOptions(TypedDict, total=False):
    """
    - `propagation`: what becomes of the objects it owns. Defaults to the kind's own policy.
    - `grace_period`: seconds that a Pod gets to end. Defaults to what the Pod says.
    - `uid`, `resource_version`: Conflict unless it is this object, and in this state. Default to whichever is there.
    - `dry_run`: check everything and delete nothing. Defaults to False.
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
    """The DeleteOptions of a request, b"" if there is nothing to say."""
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
    """A ValueError for a selector that cannot be understood, and for one that selects nothing."""
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
    else:  # checked: a comma in a value would read as one more condition
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
    if selector.selects_nothing:  # its text is empty, which a server takes for everything
        raise ValueError("this selector selects nothing: there is nothing to ask the server for")
    return str(selector)


def _check_names(given: Mapping[str, object], known: frozenset[str]) -> None:
    if not known.issuperset(given):
        raise TypeError(f"unknown option {min(given.keys() - known)!r}; there are {', '.join(sorted(known))}")
