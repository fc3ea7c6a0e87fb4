"""Templates: Pods as those who manage them want them.

`pod_from_template` is how every controller of the plane makes a Pod. What it gives shares nothing with the template, so
that a controller may change it (a volume, a node, a name) before it creates it; to create many that are equal, make one
and create it as often as needed.
"""

from __future__ import annotations

import copy

from ostinato.api.meta import ObjectMeta
from ostinato.api.object import Object
from ostinato.api.owners import controller_reference_to
from ostinato.kinds.core_v1 import Pod, PodTemplateSpec


def pod_from_template(template: PodTemplateSpec, owner: Object) -> Pod:
    """A Pod that the owner manages; its name is the owner's and five random characters, unless it is given another."""
    return Pod(
        metadata=ObjectMeta(
            namespace=owner.metadata.namespace,
            generate_name=f"{owner.metadata.name}-",
            labels=dict(template.metadata.labels),
            annotations=dict(template.metadata.annotations),
            finalizers=list(template.metadata.finalizers),
            owner_references=[controller_reference_to(owner)],
        ),
        spec=copy.deepcopy(template.spec),
    )
