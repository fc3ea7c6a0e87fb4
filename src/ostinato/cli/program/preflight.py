"""Preflight: check that a program can run on a cluster before its managers start.

- Applies the program's CustomResourceDefinitions, if requested, and waits until they are established.
- Lists each kind that a controller watches, with limit 1, in the same scope as the controller.
- A missing kind, a denied list or an unreachable server is a CommandError that says what to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ostinato.api.errors import APIError, Forbidden, NotFound, Unauthorized
from ostinato.api.status import UNEXPECTED_SERVER_RESPONSE
from ostinato.cli.error import CommandError
from ostinato.client import Client, MetadataOf, TransportError
from ostinato.client.config.error import ConfigError
from ostinato.client.list_watch import ListOptions, ListWatch
from ostinato.client.views import Typed, View
from ostinato.client.waiting import WaitTimedOut
from ostinato.crd.program import controllers_of, is_custom, kind_sources
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.kinds.core_v1 import Namespace
from ostinato.manager.manager import Manager
from ostinato.webhook.webhooks import Webhooks

_ANSWER_SECONDS: Final = 15.0
_ESTABLISHED_SECONDS: Final = 30.0
_FIELD_MANAGER: Final = "ostinato-run"
_ANONYMOUS: Final = 'User "system:anonymous"'
_logger = logging.getLogger("ostinato.cli")


class Watch(NamedTuple):
    """One list that a controller will request."""

    controller: str
    view: View[Any]
    namespace: str


async def prepare(manager: Manager, target: str, definitions: Iterable[dict[str, Any]]) -> None:
    """Apply the definitions and check every watch of the manager. `target`: the program's file, for messages."""
    async with manager.connected("preflight") as client:
        try:
            await asyncio.gather(*(_install(client, each) for each in definitions))
            watches = _watches(manager)
            for watch in watches:
                await _check_watch(client, watch, target)
            for namespace in sorted({watch.namespace for watch in watches} - {""}):
                await _check_namespace(client, namespace)
        except ConfigError as error:
            raise CommandError(str(error)) from None
        except TransportError as error:
            raise CommandError(f"{error}; check the kubeconfig, or use --embedded to run without a cluster") from None
        except Unauthorized as error:
            raise CommandError(f"authentication failed: {error}; check the user of the kubeconfig") from None
        except (APIError, WaitTimedOut) as error:
            raise CommandError(_with_response(error)) from None


async def install_webhooks(manager: Manager, webhooks: Iterable[Webhooks]) -> None:
    """Apply the webhooks' configurations; they replace those of an earlier run."""
    async with manager.connected("preflight") as client:
        try:
            for configuration in (each for some in webhooks for each in some.configurations()):
                await client.apply(configuration, force=True, field_manager=_FIELD_MANAGER, timeout=_ANSWER_SECONDS)
        except APIError as error:
            raise CommandError(str(error)) from None


async def _install(client: Client, definition: dict[str, Any]) -> None:
    name = definition["metadata"]["name"]
    try:
        await client.apply(definition, force=True, field_manager=_FIELD_MANAGER, timeout=_ANSWER_SECONDS)
    except Forbidden as error:
        raise CommandError(
            f"CustomResourceDefinition {name} cannot be applied: {error}; ask a cluster administrator to install it"
        ) from None
    await client.wait_for(CustomResourceDefinition, name, "Established", timeout=_ESTABLISHED_SECONDS)


async def _check_watch(client: Client, watch: Watch, target: str) -> None:
    collection = client.list_watch(MetadataOf(watch.view))
    if watch.namespace and await _is_namespaced(collection):
        collection = client.list_watch(MetadataOf(watch.view), namespace=watch.namespace)
    kind = f"{watch.view.gvk.api_version} {watch.view.gvk.kind}"
    try:
        await collection.list(ListOptions(limit=1, timeout=_ANSWER_SECONDS))
    except NotFound:
        custom = isinstance(watch.view, Typed) and is_custom(watch.view.cls)
        remedy = "use --install-crds to install its definition" if custom else "install its CustomResourceDefinition"
        raise CommandError(f"controller {watch.controller}: the server does not serve {kind}; {remedy}") from None
    except Forbidden as error:
        remedy = f"`ostinato manifests {target}` writes the role that it needs; -n NAMESPACE needs fewer permissions"
        if _ANONYMOUS in error.message:
            remedy = "the kubeconfig has no credentials; check its user"
        raise CommandError(f"controller {watch.controller} may not list {kind}: {error}; {remedy}") from None


async def _is_namespaced(collection: ListWatch) -> bool:
    """Whether the kind is namespaced; for a kind without a class this asks the server."""
    try:
        return (await collection.info()).namespaced
    except NotFound:  # the list fails with the same error and reports it
        return True


async def _check_namespace(client: Client, name: str) -> None:
    """Warn if a namespace does not exist: it may be created later, but a misspelt name is more likely."""
    try:
        found = await client.get(MetadataOf(Namespace), name, missing=None, timeout=_ANSWER_SECONDS)
    except Forbidden:  # a Role does not grant access to the Namespace object
        return
    if found is None:
        _logger.warning("namespace not found, no events until it is created namespace=%s", name)


def _with_response(error: Exception) -> str:
    """Format an error; add the response's text if it is not an API server's, such as a proxy's."""
    answers = error.causes if isinstance(error, APIError) and error.has_cause(UNEXPECTED_SERVER_RESPONSE) else ()
    return ": ".join([str(error), *(each.message.strip() for each in answers if each.message.strip() != "unknown")])


def _watches(manager: Manager) -> list[Watch]:
    """Return the watches to check: without kinds that the program's own webhooks convert, which do not serve yet."""
    converted = {name for each in manager.runnables if isinstance(each, Webhooks) for name in each.definitions}
    found = []
    for controller in controllers_of(manager):
        for source in kind_sources(controller):
            if source.options.optional:
                continue
            info = source.view.info
            if info is None or f"{info.plural}.{info.gvk.group}" not in converted:
                settings = source.options.settings or manager.caches.of(source.view)
                found += [Watch(controller.name, source.view, namespace) for namespace in settings.namespaces]
    return found
