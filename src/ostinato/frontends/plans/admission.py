"""Optional webhook on Instances: refuses a change when it is stored, as KUDO's does, instead of when it is reconciled.

    Manager().add(PlanController(), InstanceWebhook(ServiceEndpoint("kudo-system", "kudo"))).run()

Plans run without it; it only moves the refusal to `kubectl apply`.
"""

from __future__ import annotations

from typing import Any

from ostinato.client.client import Client
from ostinato.controllers.runnable import Dependencies
from ostinato.frontends.plans.api import Instance, OperatorVersion, OperatorVersionSpec
from ostinato.frontends.plans.decisions.triggers import Change, Refused, first_plan, fixed_values, plan_of
from ostinato.webhook.configuration import Endpoint
from ostinato.webhook.hooks import validator
from ostinato.webhook.request import AdmissionRequest
from ostinato.webhook.response import Denied
from ostinato.webhook.webhooks import Webhooks


class InstanceWebhook(Webhooks):
    def __init__(self, endpoint: Endpoint, *, name: str = "kudo", **options: Any) -> None:
        """`options`: those of `Webhooks`."""
        self._client: Client | None = None

        async def check(instance: Instance, old: Instance | None, request: AdmissionRequest) -> None:
            await self._check(instance, old, request)

        super().__init__(validator(Instance)(check), endpoint=endpoint, name=name, **options)

    async def run(self, dependencies: Dependencies) -> None:
        self._client = dependencies.client.live
        await super().run(dependencies)

    async def _check(self, instance: Instance, old: Instance | None, request: AdmissionRequest) -> None:
        namespace = request.namespace
        place = f"Instance {namespace}/{request.name or instance.metadata.name}"
        version = await self._version(instance, namespace)
        try:
            if old is None:
                if version is None:
                    return  # it may be created later
                first_plan(version, fixed_values(version, instance.spec.parameters))
            elif version is not None and old.spec != instance.spec:
                await self._check_change(instance, old, version, namespace)
        except Refused as refused:
            verb = "create" if old is None else "update"
            raise Denied(f"failed to {verb} {place}: {refused}") from None

    async def _check_change(
        self, instance: Instance, old: Instance, version: OperatorVersionSpec, namespace: str
    ) -> None:
        before = await self._version(old, namespace) or version
        execution = old.status.execution if old.status is not None else None
        recorded = fixed_values(before, old.spec.parameters)
        if execution is not None and execution.parameters is not None:
            recorded = execution.parameters
        wanted = dict(instance.spec.parameters)
        for each in version.parameters:
            if each.is_immutable and each.name in recorded:
                wanted.setdefault(each.name, recorded[each.name])
        requested = instance.spec.plan_execution
        is_new = requested.plan_name and requested != old.spec.plan_execution
        plan_of(
            Change(
                old=before,
                new=version,
                old_parameters=recorded,
                new_parameters=wanted,
                is_upgrade=instance.spec.operator_version != old.spec.operator_version,
                new_name=instance.spec.operator_version.name,
                running="" if execution is None else execution.plan,
                requested=requested.plan_name if is_new else "",
                is_deleting=instance.metadata.deletion_timestamp is not None,
            )
        )

    async def _version(self, instance: Instance, namespace: str) -> OperatorVersionSpec | None:
        assert self._client is not None, "run() is called before"
        reference = instance.spec.operator_version
        if not reference.name:
            return None
        place = reference.namespace or namespace
        found = await self._client.get(OperatorVersion, reference.name, namespace=place, missing=None)
        return None if found is None else found.spec
