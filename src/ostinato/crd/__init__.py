"""CustomResourceDefinitions, roles and manifests from Python types; Python types from CustomResourceDefinitions.

    crd_of(Widget)                                       # the CustomResourceDefinition of a kind
    roles_of(access_of(controller), name="widgets")      # the roles that a controller needs
    types_of(crd)                                        # Python source for a third-party kind

Definitions are generated from structs, dataclasses and pydantic models, with the markers of `ostinato.api.markers` for
what types cannot express. `manifest_files`, `write_manifests` and `check_manifests` write and verify the files, webhook
configurations (`ostinato.webhook`) included.
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
    review_access,
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
    "review_access",
    "roles_of",
    "schema_of",
    "types_of",
    "write_manifests",
]
