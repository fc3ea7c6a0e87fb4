"""Builds Pods from templates.

All controllers create Pods with `pod_from_template`. The result shares nothing with the template and may be modified
before creation; to create many equal Pods, build one and create it repeatedly.
"""

from __future__ import annotations

import copy

from ostinato.api.meta import ObjectMeta
from ostinato.api.object import Object
from ostinato.api.owners import controller_reference_to
from ostinato.kinds.core_v1 import Pod, PodTemplateSpec


def pod_from_template(template: PodTemplateSpec, owner: Object) -> Pod:
    """Return a Pod with a controller reference to the owner and generateName `<owner>-`."""
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
