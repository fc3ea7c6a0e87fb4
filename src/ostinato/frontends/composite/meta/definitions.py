"""Kinds of metacontroller.k8s.io/v1alpha1: CompositeController, DecoratorController and ControllerRevision.

Objects that were written for metacontroller are read unchanged. `definitions()` are the CustomResourceDefinitions.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal

import msgspec

from ostinato.api.markers import DefinitionMeta, NoStatus, PreserveUnknown, marked
from ostinato.api.meta import LabelSelector, LabelSelectorRequirement
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.crd.definition import APPROVAL, crd_of

GROUP: Final = "metacontroller.k8s.io"
VERSION: Final = "v1alpha1"

HookVersion = Literal["v1", "v2"]
UpdateMethod = Literal["OnDelete", "Recreate", "InPlace", "RollingRecreate", "RollingInPlace"]
ROLLING: Final = ("RollingRecreate", "RollingInPlace")

_APPROVED: Final = DefinitionMeta(annotations={APPROVAL: "unapproved, request not yet submitted"})


class SecretRef(Struct):
    name: str
    namespace: str


class SecretKeyRef(SecretRef):
    key: str


class ResourceKeyRef(SecretRef):
    key: str = "ca.crt"


class CABundle(Struct):
    """Certificates that verify the server; exactly one source."""

    inline: str | None = None
    secret_ref: ResourceKeyRef | None = None
    config_map_ref: ResourceKeyRef | None = None


class Authorization(Struct):
    """A header `Authorization: TYPE VALUE`."""

    secret_ref: SecretKeyRef
    type: str = "Bearer"


class BasicAuth(Struct):
    secret_ref: SecretRef
    username_key: str = "username"
    password_key: str = "password"  # noqa: S105 - the name of a key


class ClientTLS(Struct):
    secret_ref: SecretRef
    cert_key: str = "tls.crt"
    private_key_key: str = "tls.key"


class Credentials(Struct):
    """How a hook's server is verified, and how this client authenticates."""

    ca_bundle: CABundle | None = None
    client_tls: ClientTLS | None = msgspec.field(name="clientTLS", default=None)
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None


class EndpointConfig(Credentials):
    """Credentials for the hooks of a host, `HOST` or `HOST:PORT`."""

    host: str


class ServiceReference(Struct):
    name: str
    namespace: str
    port: int | None = None
    protocol: str | None = None


class WebhookEtag(Struct):
    enabled: bool | None = None
    cache_timeout_seconds: int | None = None
    cache_cleanup_seconds: int | None = None


class Webhook(Credentials):
    """`url`, or `service` and `path`."""

    url: str | None = None
    timeout: str | None = None
    etag: WebhookEtag | None = None
    path: str | None = None
    service: ServiceReference | None = None
    response_unmarshall_mode: Literal["loose", "strict"] | None = msgspec.field(
        name="responseUnMarshallMode", default=None
    )


class Hook(Struct):
    version: HookVersion = "v1"
    webhook: Webhook | None = None


class ResourceRule(Struct):
    api_version: str
    resource: str


class RevisionHistory(Struct):
    field_paths: list[str] = []


class ParentRule(ResourceRule):
    revision_history: RevisionHistory | None = None
    label_selector: LabelSelector | None = None
    ignore_status_changes: bool | None = None


class ConditionCheck(Struct):
    type: str
    status: str | None = None
    reason: str | None = None


class StatusChecks(Struct):
    conditions: list[ConditionCheck] = []


class UpdateStrategy(Struct):
    method: UpdateMethod | None = None
    status_checks: StatusChecks | None = None


class ChildRule(ResourceRule):
    update_strategy: UpdateStrategy | None = None


class CompositeHooks(Struct):
    customize: Hook | None = None
    sync: Hook | None = None
    finalize: Hook | None = None
    pre_update_child: Hook | None = None
    post_update_child: Hook | None = None


class CompositeControllerSpec(Struct):
    parent_resource: ParentRule
    child_resources: list[ChildRule] = []
    hooks: CompositeHooks | None = None
    endpoint_configs: list[EndpointConfig] = []
    resync_period_seconds: int | None = None
    generate_selector: bool | None = None


class AnnotationSelector(Struct):
    match_annotations: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class TargetRule(ResourceRule):
    label_selector: LabelSelector | None = None
    annotation_selector: AnnotationSelector | None = None
    ignore_status_changes: bool | None = None


class DecoratorHooks(Struct):
    customize: Hook | None = None
    sync: Hook | None = None
    finalize: Hook | None = None


class DecoratorControllerSpec(Struct):
    resources: list[TargetRule]
    attachments: list[ChildRule] = []
    hooks: DecoratorHooks | None = None
    endpoint_configs: list[EndpointConfig] = []
    resync_period_seconds: int | None = None


class NoFields(Struct):
    """A status without fields."""


@marked(_APPROVED)
class CompositeController(CustomResource, group=GROUP, version=VERSION, namespaced=False, short_names=["cc", "cctl"]):
    """Parents of a kind have children that a hook decides on."""

    spec: CompositeControllerSpec
    status: NoFields | None = None


@marked(_APPROVED)
class DecoratorController(
    CustomResource, group=GROUP, version=VERSION, namespaced=False, short_names=["dec", "decorators"]
):
    """Objects of any kinds get attachments, labels and annotations that a hook decides on."""

    spec: DecoratorControllerSpec
    status: NoFields | None = None


class RevisionChildren(Struct):
    api_group: str
    kind: str
    names: list[str]


@marked(_APPROVED, NoStatus())
class ControllerRevision(CustomResource, group=GROUP, version=VERSION):
    """A revision of a parent, and the children that are at it."""

    parent_patch: Annotated[dict[str, Any], PreserveUnknown()]
    children: list[RevisionChildren] = []


AnyController = CompositeController | DecoratorController


@cache
def definitions() -> tuple[dict[str, Any], ...]:
    """Return the CustomResourceDefinitions, read-only."""
    return crd_of(CompositeController), crd_of(DecoratorController), crd_of(ControllerRevision)
