"""eviction: delete a Pod if its PodDisruptionBudget allows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ostinato.api.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, TooManyRequests, Unknown
from ostinato.api.gvk import GroupResource, GroupVersionKind
from ostinato.api.selectors import labels
from ostinato.api.status import StatusCause
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.request import Response, body
from ostinato.server.request.context import AdmitAll, Context
from ostinato.server.request.negotiate import body_media, form_of
from ostinato.server.request.options import DeleteOptions, delete_options, read_delete_options, write_options
from ostinato.server.request.present import value_response
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store import records
from ostinato.server.store.records import Entry
from ostinato.server.verbs import write
from ostinato.server.verbs.delete import delete_object
from ostinato.server.verbs.subresources.binding import SUCCESS
from ostinato.server.verbs.subresources.pod_condition import set_pod_condition

EVICTION = GroupVersionKind("policy", "v1", "Eviction")

_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MOST_DISRUPTED = 2000
_RETRY_AFTER = 10  # value of Retry-After, in seconds
_ATTEMPTS = 20
_MANAGER = "kube-apiserver"
_BUDGET = GroupResource("policy", "poddisruptionbudget")
_TARGETED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


_ADMITTED = AdmitAll()  # the eviction was admitted; its deletion is not admitted again


def eviction_handler(evictions: Resource, budgets: Resource) -> Callable[[Context], Awaitable[Response]]:
    """The handler of Evictions."""

    async def evict(context: Context) -> Response:
        request = context.request
        form = form_of(request, evictions)
        media = body_media(request)
        options = write_options(request, "CreateOptions")
        data = await request.read()
        eviction = body.read(request, evictions, _as_v1(data), media, options)
        write.set_namespace(context, eviction)
        if eviction["metadata"].get("name", "") != context.route.name:
            raise BadRequest.of("name in URL does not match name in Eviction object")
        given = _delete_options(context, eviction, dry=options.dry_run)
        await context.admission.mutate(context, "CREATE", eviction, None, options)
        await context.admission.validate(context, "CREATE", eviction, None, options)
        route = msgspec.structs.replace(context.route, subresource="")
        await _Eviction(msgspec.structs.replace(context, route=route), budgets, given).run()
        return value_response(SUCCESS, form, 201)

    return evict


def _as_v1(data: bytes) -> bytes:
    """Convert a v1beta1 Eviction, which has the same fields."""
    return data.replace(b'"policy/v1beta1"', b'"policy/v1"', 1)


def _delete_options(context: Context, eviction: Json, *, dry: bool) -> Json:
    given: dict[str, Any] = dict(eviction.get("deleteOptions") or {})
    if given.get("ignoreStoreReadErrorWithClusterBreakingPotential"):
        path = Path("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential")
        fault = FieldError.invalid(path, True, "can not be set for pod eviction, try after removing the option")  # noqa: FBT003
        raise Invalid.of(EVICTION.group_kind, context.route.name, [fault])
    asked = ["All"] if dry else []
    if given.get("dryRun") and asked and given["dryRun"] != asked:
        shown = " ".join(given["dryRun"])
        raise Unknown.of(f"Non-matching dry-run options in request and content: [All] and [{shown}]")
    given["dryRun"] = given.get("dryRun") or asked
    return given


class _Eviction:
    def __init__(self, context: Context, budgets: Resource, given: Json) -> None:
        self._context = context
        self._budgets = budgets
        self._given = given
        self._options, _ = read_delete_options(context.request, given)

    async def run(self) -> None:
        pod = self._pod()
        if _is_exempt(pod):
            await self._evict_exempt(pod)
            return
        covering = self._covering(pod)
        if len(covering) > 1:
            raise Unknown.of(_SEVERAL)
        options = self._options
        pinned = False
        if covering:
            budget = msgspec.json.decode(covering[0].data)
            pinned = not _is_ready(pod) and _allows_unhealthy(budget)
            if pinned:  # this state of the Pod, whatever resourceVersion the client names
                options = msgspec.structs.replace(options, resource_version=pod["metadata"]["resourceVersion"])
            else:
                await self._decrement(covering[0])
        try:
            await self._delete(options)
        except Conflict:
            if pinned and self._options.resource_version is None:
                raise _busy(covering[0].key.rpartition("/")[2]) from None
            raise

    def _pod(self) -> Json:
        entry = self._context.collection.newest(self._context.key)
        if entry is None:
            raise NotFound.of(self._context.resource.group_resource, self._context.route.name)
        return self._context.resource.object(entry.data)

    async def _evict_exempt(self, pod: Json) -> None:
        """Delete a Pod that no budget applies to; unless it has finished, it must be unchanged."""
        for _ in range(_ATTEMPTS):
            pending = pod.get("status", {}).get("phase") == "Pending" and not pod["metadata"].get("deletionTimestamp")
            options = _with_preconditions(self._options, pod) if pending else self._options
            try:
                await self._delete(options)
            except Conflict:
                if self._options.resource_version is not None or self._options.uid not in (
                    None,
                    pod["metadata"]["uid"],
                ):
                    raise
                pod = self._pod()
                if not _is_exempt(pod):
                    await self.run()
                    return
            else:
                return
        raise _busy("")

    def _covering(self, pod: Json) -> list[Entry]:
        collection = self._budgets.collection
        assert collection is not None
        found = []
        for entry in collection.select(f"{self._context.route.namespace}/"):
            selector = msgspec.json.decode(entry.data)["spec"].get("selector")
            try:
                matches = labels.from_label_selector(selector).matches(pod["metadata"].get("labels", {}))
            except ValueError:
                matches = False  # an invalid selector selects nothing
            if matches:
                found.append(entry)
        return found

    async def _decrement(self, entry: Entry) -> None:
        """Decrement disruptionsAllowed of a budget; retry on conflict."""
        context, collection = self._context, self._budgets.collection
        assert collection is not None
        current: Entry | None = entry
        for _ in range(_ATTEMPTS):
            if current is None:
                raise NotFound.of(self._budgets.group_resource, entry.key.rpartition("/")[2])
            budget = self._budgets.object(current.data)
            _check(budget)
            if self._options.dry_run:
                return
            moment = write.now(context.world.clock)
            changed = _decremented(budget, context.route.name, moment)
            manager = self._budgets.managers.get("status")
            if manager is not None:
                changed = manager.update(budget, changed, _MANAGER, moment)
            try:
                await write.put_object(context.index, self._budgets, changed, current)
            except records.Conflict as conflict:
                current = conflict.current
            else:
                return
        raise _busy(entry.key.rpartition("/")[2])

    async def _delete(self, options: DeleteOptions) -> None:
        """Set the DisruptionTarget condition on the Pod, then delete it."""
        context = self._context
        if not options.dry_run:
            version = await self._mark(options)
            if options.resource_version is not None:
                options = msgspec.structs.replace(options, resource_version=version)
        delete_options(context.request, self._given)  # invalid options are reported only at this point
        await delete_object(msgspec.structs.replace(context, admission=_ADMITTED), options)

    async def _mark(self, options: DeleteOptions) -> str:
        context = self._context
        while True:
            pod = self._pod()
            meta = pod["metadata"]
            about = GroupResource("", "Pod")
            if options.uid and options.uid != meta["uid"]:
                why = (
                    f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
                    "The object might have been deleted and then recreated"
                )
                raise Conflict.of(about, meta["name"], why)
            if options.resource_version and options.resource_version != meta["resourceVersion"]:
                why = (
                    f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                    f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
                )
                raise Conflict.of(about, meta["name"], why)
            current = context.collection.newest(context.key)
            assert current is not None
            status = dict(pod.get("status", {}))
            set_pod_condition(status, _TARGETED, write.now(context.world.clock))
            if status == pod.get("status"):
                return str(meta["resourceVersion"])
            try:
                entry = await write.put(context, {**pod, "metadata": dict(meta), "status": status}, current)
            except records.Conflict:
                continue
            return str(entry.version)


def _is_exempt(pod: Json) -> bool:
    """Whether no budget applies: the Pod is not running, or is terminating."""
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _allows_unhealthy(budget: Json) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _with_preconditions(options: DeleteOptions, pod: Json) -> DeleteOptions:
    """The options with this state of the Pod as precondition, unless the client names one."""
    if options.resource_version is not None:
        return options
    return msgspec.structs.replace(options, resource_version=pod["metadata"]["resourceVersion"])


def _refused(message: str, retry_after: int) -> TooManyRequests:
    error = TooManyRequests.of(_VIOLATION, retry_after)
    details = msgspec.structs.replace(error.details, causes=(StatusCause("DisruptionBudget", message, ""),))
    return TooManyRequests(msgspec.structs.replace(error.status, details=details))


def _busy(name: str) -> TooManyRequests:
    return _refused(f"The disruption budget {name} is still being processed by the server.", _RETRY_AFTER)


def _check(budget: Json) -> None:
    """Reject unless the budget allows a disruption."""
    name, status = budget["metadata"]["name"], budget.get("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _busy(name)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise Forbidden.of(_BUDGET, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods", ())) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise Forbidden.of(_BUDGET, name, why)
    if not allowed:
        raise _refused(_why(name, status), 0)


def _why(name: str, status: Json) -> str:
    conditions = status.get("conditions", ())
    false = [each for each in conditions if each.get("type") == "DisruptionAllowed" and each.get("status") == "False"]
    message = false[0].get("message", "") if false else ""
    what = f"The disruption budget {name}"
    if message and false[0].get("reason") == "SyncFailed":
        return f"{what} does not allow evicting pods currently because it failed sync: {message}"
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if current <= desired:
        return f"{what} needs {desired} healthy pods and has {current} currently"
    if message:
        return f"{what} does not allow evicting pods currently ({false[0].get('reason', '')}): {message}"
    return f"{what} does not allow evicting pods currently"


def _decremented(budget: Json, pod: str, now: str) -> Json:
    """The budget after one more disruption."""
    status = dict(budget["status"])
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod: now}
    if not status["disruptionsAllowed"]:
        conditions = status.get("conditions", [])
        old = next((each for each in conditions if each.get("type") == "DisruptionAllowed"), None)
        kept = old is not None and old.get("status") == "False"
        condition = {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": status.get("observedGeneration", 0),
            "lastTransitionTime": old["lastTransitionTime"] if old is not None and kept else now,
            "reason": "InsufficientPods",
            "message": "",
        }
        status["conditions"] = [each for each in conditions if each is not old] + [condition]
    return {**budget, "metadata": dict(budget["metadata"]), "status": status}
