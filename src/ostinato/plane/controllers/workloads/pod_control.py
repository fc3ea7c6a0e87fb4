"""Pod control: creates and deletes Pods for an owner and records events on it."""

from __future__ import annotations

import msgspec

from ostinato.api.codec import to_json
from ostinato.api.errors import NAMESPACE_TERMINATING, APIError, Conflict, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import Object
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Context
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.objects.pod_state import PodState


class NewPod(Object, version="v1", kind="Pod", plural="pods"):
    """A Pod to create, whose spec is encoded once for many; of the created one, its name is read."""

    spec: msgspec.Raw = msgspec.Raw(b"{}")


def encoded(pod: Pod) -> NewPod:
    return NewPod(metadata=pod.metadata, spec=msgspec.Raw(to_json(pod.spec)))


async def create_pod(ctx: Context, owner: Object, pod: NewPod) -> None:
    """Create a Pod. In a terminating namespace no event is recorded."""
    try:
        made = await ctx.client.create(pod)
    except (APIError, TransportError) as error:
        if not (isinstance(error, APIError) and error.has_cause(NAMESPACE_TERMINATING)):
            ctx.event(owner, "FailedCreate", f"Error creating: {error}", kind="Warning")
        raise
    ctx.event(owner, "SuccessfulCreate", f"Created pod: {made.metadata.name}")


async def delete_pod(ctx: Context, owner: Object, key: NamespacedName, uid: str) -> None:
    """Delete a Pod; a Pod that was deleted or recreated is ignored."""
    try:
        await ctx.client.delete(PodState, key, uid=uid)
    except (NotFound, Conflict):
        return
    except (APIError, TransportError) as error:
        ctx.event(owner, "FailedDelete", f"Error deleting: {error}", kind="Warning")
        raise
    ctx.event(owner, "SuccessfulDelete", f"Deleted pod: {key.name}")
