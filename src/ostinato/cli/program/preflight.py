"""Preflight: whether a program can run on a server, found out before it does.

Definitions are put there if they are to be; then each kind that a controller watches is listed, one object of it, as
the controller will. What is missing, refused or out of reach is a Failure that says what to do about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ostinato.api.errors import APIError, Forbidden, NotFound, Unauthorized
from ostinato.api.status import UNEXPECTED_SERVER_RESPONSE
from ostinato.cli.error import Failure
from ostinato.cli.program.program import controllers_of, is_custom, kinds_followed
from ostinato.client import Client, MetadataOf, TransportError
from ostinato.client.config.error import ConfigError
from ostinato.client.list_watch import ListOptions, ListWatch
from ostinato.client.views import Typed, View
from ostinato.client.waiting import WaitTimedOut
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
    """One list that a controller will ask for."""

    controller: str
    view: View[Any]
    namespace: str


async def prepare(manager: Manager, target: str, definitions: Iterable[dict[str, Any]]) -> None:
    """Put the definitions there, and look whether all that is watched can be; `target` is the file, for messages."""
    async with manager.connected("preflight") as client:
        try:
            await asyncio.gather(*(_install(client, each) for each in definitions))
            watches = _watches(manager)
            for watch in watches:
                await _look(client, watch, target)
            for namespace in sorted({watch.namespace for watch in watches} - {""}):
                await _look_for_namespace(client, namespace)
        except ConfigError as error:
            raise Failure(str(error)) from None
        except TransportError as error:
            raise Failure(f"{error}; is it the right kubeconfig? --embedded needs no cluster") from None
        except Unauthorized as error:
            raise Failure(
                f"the server does not know who this is: {error}; look at the user of the kubeconfig"
            ) from None
        except (APIError, WaitTimedOut) as error:
            raise Failure(_words(error)) from None


async def install_webhooks(manager: Manager, webhooks: Iterable[Webhooks]) -> None:
    """Let the server ask webhooks: their configurations, as they are now, take the place of earlier ones."""
    async with manager.connected("preflight") as client:
        try:
            for configuration in (each for some in webhooks for each in some.configurations()):
                await client.apply(configuration, force=True, field_manager=_FIELD_MANAGER, timeout=_ANSWER_SECONDS)
        except APIError as error:
            raise Failure(str(error)) from None


async def _install(client: Client, definition: dict[str, Any]) -> None:
    name = definition["metadata"]["name"]
    try:
        await client.apply(definition, force=True, field_manager=_FIELD_MANAGER, timeout=_ANSWER_SECONDS)
    except Forbidden as error:
        raise Failure(f"the definition {name} cannot be installed: {error}; an administrator can") from None
    await client.wait_for(CustomResourceDefinition, name, "Established", timeout=_ESTABLISHED_SECONDS)


async def _look(client: Client, watch: Watch, target: str) -> None:
    collection = client.list_watch(MetadataOf(watch.view))
    if watch.namespace and await _is_namespaced(collection):
        collection = client.list_watch(MetadataOf(watch.view), namespace=watch.namespace)
    kind = f"{watch.view.gvk.kind} of {watch.view.gvk.api_version}"
    try:
        await collection.list(ListOptions(limit=1, timeout=_ANSWER_SECONDS))
    except NotFound:
        ours = isinstance(watch.view, Typed) and is_custom(watch.view.cls)
        remedy = "--install-crds installs the definitions of this program" if ours else "is its definition installed?"
        raise Failure(f"controller {watch.controller}: the server has no {kind}; {remedy}") from None
    except Forbidden as error:
        remedy = f"`ostinato manifests {target}` writes the role that it needs, and -n NAMESPACE needs less"
        if _ANONYMOUS in error.message:
            remedy = "nobody is named: look at the user of the kubeconfig"
        raise Failure(f"controller {watch.controller} may not read {kind}: {error}; {remedy}") from None


async def _is_namespaced(collection: ListWatch) -> bool:
    """Whether namespaces count. What is in none is watched whole; of a kind without a class, only the server knows."""
    try:
        return (await collection.info()).namespaced
    except NotFound:  # which the list will be told, too
        return True


async def _look_for_namespace(client: Client, name: str) -> None:
    """It may come later; but more often its name is wrong, and nothing would ever happen."""
    try:
        found = await client.get(MetadataOf(Namespace), name, missing=None, timeout=_ANSWER_SECONDS)
    except Forbidden:  # who may read one namespace alone may not look for it
        return
    if found is None:
        _logger.warning("there is no namespace %s yet: nothing happens until there is", name)


def _words(error: Exception) -> str:
    """With what was answered, where that was no server's word: from a proxy, or from a server that wants HTTPS."""
    answers = error.causes if isinstance(error, APIError) and error.has_cause(UNEXPECTED_SERVER_RESPONSE) else ()
    return ": ".join([str(error), *(each.message.strip() for each in answers if each.message.strip() != "unknown")])


def _watches(manager: Manager) -> list[Watch]:
    """What is to be looked at: not what the manager's own webhooks have to convert, which do not serve yet."""
    converted = {name for each in manager.runnables if isinstance(each, Webhooks) for name in each.definitions}
    found = []
    for controller in controllers_of(manager):
        for source in kinds_followed(controller):
            if source.options.optional:
                continue
            info = source.view.info
            if info is None or f"{info.plural}.{info.gvk.group}" not in converted:
                settings = source.options.settings or manager.caches.of(source.view)
                found += [Watch(controller.name, source.view, namespace) for namespace in settings.namespaces]
    return found
