"""Types of meta/v1: ObjectMeta, ListMeta, LabelSelector, Condition, DeleteOptions and others.

In `ObjectMeta` and `ListMeta` an empty value is the same as an absent one, as in the API, so that `pod.metadata.name`
is always a `str`. In the other types an absent optional field is None.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ostinato.api.markers import ListAtomic, ListMap, ListSet, PatchMerge
from ostinato.api.struct import BuiltinStruct
from ostinato.api.time import Time


class OwnerReference(BuiltinStruct, atomic=True):
    """A reference to an owner; dependents are deleted with it. See `ostinato.api.owners`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(BuiltinStruct):
    """The fields of one manager and operation."""

    api_version: str = ""
    fields_type: str = ""
    fields_v1: dict[str, Any] | None = None
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: Time | None = None


class ObjectMeta(BuiltinStruct):
    annotations: dict[str, str] = {}
    creation_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    deletion_timestamp: Time | None = None
    finalizers: Annotated[list[str], ListSet(), PatchMerge()] = []
    generate_name: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    managed_fields: Annotated[list[ManagedFieldsEntry], ListAtomic()] = []
    name: str = ""
    namespace: str = ""
    owner_references: Annotated[list[OwnerReference], ListMap("uid"), PatchMerge("uid")] = []
    resource_version: str = ""
    self_link: str = ""
    uid: str = ""


class ShardInfo(BuiltinStruct):
    selector: str


class ListMeta(BuiltinStruct):
    continue_: str = ""
    remaining_item_count: int | None = None
    resource_version: str = ""
    self_link: str = ""
    shard_info: ShardInfo | None = None


class LabelSelectorRequirement(BuiltinStruct):
    key: str
    operator: str
    values: Annotated[list[str], ListAtomic()] = []


class LabelSelector(BuiltinStruct, atomic=True):
    """An empty selector matches all objects, None matches none."""

    match_expressions: Annotated[list[LabelSelectorRequirement], ListAtomic()] = []
    match_labels: dict[str, str] = {}


class FieldSelectorRequirement(BuiltinStruct):
    key: str
    operator: str
    values: Annotated[list[str], ListAtomic()] = []


class Condition(BuiltinStruct):
    """One aspect of an object's state; see `ostinato.api.conditions`."""

    type: str
    status: str
    reason: str
    message: str = msgspec.field(default_factory=str)  # values of a factory are encoded even if empty
    last_transition_time: Time | None = None  # filled in by set_condition
    observed_generation: int | None = None


class Preconditions(BuiltinStruct):
    """Conditions for a deletion; it fails if they do not hold."""

    resource_version: str | None = None
    uid: str | None = None


class DeleteOptions(BuiltinStruct):
    dry_run: Annotated[list[str], ListAtomic()] = []
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None
