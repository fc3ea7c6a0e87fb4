"""Python types to manifests, and definitions to Python types.

    crd_of(Widget)                                       # the CustomResourceDefinition of a kind
    roles_of(access_of(controller), name="widgets")      # the roles that a controller needs
    types_of(crd)                                        # Python source for somebody else's kind

Definitions are made from structs, dataclasses and pydantic models; what the types cannot say, the markers of
`ostinato.api.markers` do. `manifest_files`, `write_manifests` and `check_manifests` put all of it into files, and the
configurations of webhooks (`ostinato.webhook`) with it.
"""

from ostinato.crd.definition import crd_of, resource
from ostinato.crd.manifests import check_manifests, manifest_files, write_manifests
from ostinato.crd.rbac import (
    Access,
    Uses,
    access_of,
    certificate_access,
    event_access,
    event_namespaces,
    leader_election_access,
    roles_of,
)
from ostinato.crd.schema.place import SchemaError
from ostinato.crd.schema.schema import schema_of
from ostinato.crd.source import TypesError, types_of

__all__ = [
    "Access",
    "SchemaError",
    "TypesError",
    "Uses",
    "access_of",
    "certificate_access",
    "check_manifests",
    "crd_of",
    "event_access",
    "event_namespaces",
    "leader_election_access",
    "manifest_files",
    "resource",
    "roles_of",
    "schema_of",
    "types_of",
    "write_manifests",
]
