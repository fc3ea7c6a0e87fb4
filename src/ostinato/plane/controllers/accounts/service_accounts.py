"""ServiceAccount controller: creates the service account `default` in every namespace."""

from __future__ import annotations

from typing import Final

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import ServiceAccount
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.objects.per_namespace import PerNamespaceObject

NAME: Final = "serviceaccount-controller"


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    PerNamespaceObject(
        lambda: ServiceAccount(metadata=ObjectMeta(name="default")),
        lambda _: False,  # existing ones are never changed
    ).add_to(manager, NAME)
