"""Hints for kinds that the server does not have, or that may not be watched."""

from __future__ import annotations

import sys
from typing import Any

from ostinato.api.errors import Forbidden, NotFound, Unauthorized
from ostinato.api.markers import Foreign, markers_on
from ostinato.api.object import CustomResource
from ostinato.client.views import Typed, View
from ostinato.controllers.guards.program import program, relative


def remedy_for(view: View[Any], cause: Exception | None) -> str:
    """Return a hint to append to the server's error; "" if there is none."""
    if isinstance(cause, Unauthorized):
        return "; the credentials of the kubeconfig are invalid or expired"
    if not isinstance(view, Typed):
        return ""
    if isinstance(cause, Forbidden):
        return f"; `ostinato manifests {_file_of(view.cls)}` writes the role that it needs"
    if not isinstance(cause, NotFound) or not issubclass(view.cls, CustomResource):
        return ""
    if Foreign() in markers_on(view.cls):
        return " It is installed with the program that defines the kind"
    return f" `ostinato manifests {_file_of(view.cls)} | kubectl apply -f -` installs it"


def _file_of(cls: type[Any]) -> str:
    """Return the program that was run or, if that is not the user's, the file that defines a class."""
    if name := program():
        return name
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None or cls.__module__.startswith("ostinato."):  # a built-in kind
        return "FILE"
    return relative(file)
