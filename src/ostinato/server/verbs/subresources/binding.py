"""binding: assign a Pod to a node, once.

A Binding is not stored: it updates the Pod that it names, through `pods/NAME/binding` or `bindings`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from ostinato.api.errors import BadRequest, Conflict, NotFound, Unknown
from ostinato.api.gvk import GroupResource
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path, joined
from ostinato.server.request import Response, body
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import body_media, form_of
from ostinato.server.request.options import write_options
from ostinato.server.request.present import value_response
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store import records
from ostinato.server.verbs import write
from ostinato.server.verbs.subresources.pod_condition import set_pod_condition

SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_SCHEDULED = {"type": "PodScheduled", "status": "True"}


def binding_handler(pods: Resource, bindings: Resource) -> Callable[[Context], Awaitable[Response]]:
    """The handler of Bindings."""

    async def bind(context: Context) -> Response:
        request = context.request
        form = form_of(request, bindings)
        media = body_media(request)
        options = write_options(request, "CreateOptions")
        binding = body.read(request, bindings, await request.read(), media, options)
        write.set_namespace(context, binding)
        name = binding["metadata"].get("name", "")
        if context.route.name and context.route.name != name:
            raise BadRequest.of("name in URL does not match name in Binding object")
        await context.admission.mutate(context, "CREATE", binding, None, options)
        _validate(binding)
        await context.admission.validate(context, "CREATE", binding, None, options)
        if not name:
            raise BadRequest.of("Name parameter required.")
        route = msgspec.structs.replace(context.route, name=name, subresource="")
        target = msgspec.structs.replace(context, resource=pods, route=route)
        await _assign(target, binding, dry=options.dry_run)
        return value_response(SUCCESS, form, 201)

    return bind


def _validate(binding: Json) -> None:
    target = binding.get("target", {})
    errors = []
    if target.get("kind", "") not in ("", "Node"):
        errors.append(FieldError.not_supported(Path("target", "kind"), target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(FieldError.required(Path("target", "name")))
    if errors:
        raise Unknown.of(joined(errors))


async def _assign(context: Context, binding: Json, *, dry: bool) -> None:
    """Set the node of the Pod; retry on conflict."""
    name = context.route.name
    while True:
        current = context.collection.newest(context.key)
        if current is None:
            raise NotFound.of(context.resource.group_resource, name)
        pod = context.resource.object(current.data)
        _check_preconditions(context, binding["metadata"], pod["metadata"])
        why = _bind_error(pod)
        if why:
            raise Conflict.of(GroupResource("", "pods/binding"), name, why)
        if dry:
            return
        try:
            await write.put(context, _bound(pod, binding, write.now(context.world.clock)), current)
        except records.Conflict:
            continue
        return


def _check_preconditions(context: Context, wanted: Json, found: Json) -> None:
    for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        if wanted.get(field) and wanted[field] != found[field]:
            name = context.route.name
            raise Conflict.of(
                context.resource.group_resource,
                name,
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{context.route.namespace}/{name}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: "
                f"{wanted[field]}, {what} in object meta: {found[field]}",
            )


def _bind_error(pod: Json) -> str:
    """Why a Pod cannot be bound, "" if it can."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f"pod {name} is already assigned to node {quote(spec['nodeName'])}"
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


def _bound(pod: Json, binding: Json, now: str) -> Json:
    """The Pod with its node, and the labels and annotations of the binding."""
    metadata, status = dict(pod["metadata"]), dict(pod.get("status", {}))
    for field in ("annotations", "labels"):
        brought = binding["metadata"].get(field)
        if brought:
            metadata[field] = {**metadata.get(field, {}), **brought}
    status.pop("nominatedNodeName", None)
    set_pod_condition(status, _SCHEDULED, now)
    spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}
