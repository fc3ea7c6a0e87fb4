"""Registration: the webhook configurations and the conversion of CustomResourceDefinitions, written to the cluster.

The CA bundle is injected by the webhook server (`ostinato.webhook.ca_injector`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ostinato.api.errors import NotFound
from ostinato.certificates.object_access import DEFINITION, MUTATING, VALIDATING
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.webhooks.dispatcher import CONVERSION, admission_path
from ostinato.webhook.ca_injector import BundleTarget
from ostinato.webhook.configuration import Endpoint

Json = dict[str, Any]


def configurations(hooks: Iterable[Hook], name: str, endpoint: Endpoint) -> list[Json]:
    """Return the webhook configurations of hooks; none for bindings that there are not."""
    entries: dict[bool, list[Json]] = {True: [], False: []}
    for hook in hooks:
        for binding in hook.config.admission:
            config = endpoint.client_config(admission_path(hook, binding))
            entries[binding.mutating].append(
                {**binding.webhook, "clientConfig": config, "admissionReviewVersions": ["v1"]}
            )
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name},
            "webhooks": sorted(entries[mutating], key=lambda entry: str(entry["name"])),
        }
        for mutating, kind in ((True, MUTATING), (False, VALIDATING))
        if entries[mutating]
    ]


def targets(wanted: Iterable[Json], definitions: Iterable[str]) -> list[BundleTarget]:
    """Return the objects that need the CA bundle."""
    kinds = {MUTATING.kind: MUTATING, VALIDATING.kind: VALIDATING}
    return [
        *(BundleTarget(kinds[each["kind"]], each["metadata"]["name"]) for each in wanted),
        *(BundleTarget(DEFINITION, each) for each in definitions),
    ]


async def register(client: Client, wanted: Iterable[Json], bundles: Mapping[str, str]) -> None:
    """Create or update the webhook configurations. `bundles`: CA bundles to keep, by kind."""
    for each in wanted:
        view = Unstructured.of(each["apiVersion"], each["kind"])
        found = await client.get(view, each["metadata"]["name"], missing=None)
        if found is None:
            await client.create(each)
            continue
        kept = next((entry["clientConfig"].get("caBundle") for entry in found.get("webhooks", ())), None)
        bundle = bundles.get(each["kind"]) or kept
        webhooks = [_with_bundle(entry, bundle) for entry in each["webhooks"]]
        await client.update({**found, "webhooks": webhooks})


async def convert_by(client: Client, definition: str, endpoint: Endpoint) -> bool:
    """Let a CustomResourceDefinition convert by webhook; False if it does not exist."""
    view = Unstructured(DEFINITION)
    found = await client.get(view, definition, missing=None)
    if found is None:
        return False
    present = found.get("spec", {}).get("conversion", {}).get("webhook", {}).get("clientConfig", {})
    config = endpoint.client_config(CONVERSION + definition)
    config = {**config, **({"caBundle": present["caBundle"]} if present.get("caBundle") else {})}
    stale = {key: None for key in present.keys() - config.keys()}  # noqa: C420 - a patch removes by null
    webhook = {"clientConfig": {**stale, **config}, "conversionReviewVersions": ["v1"]}
    conversion = {"strategy": "Webhook", "webhook": webhook}
    try:
        await client.patch(view, definition, MergePatch({"spec": {"conversion": conversion}}))
    except NotFound:
        return False
    return True


def _with_bundle(entry: Json, bundle: str | None) -> Json:
    if not bundle:
        return entry
    return {**entry, "clientConfig": {**entry["clientConfig"], "caBundle": bundle}}
