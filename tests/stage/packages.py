"""Packages of an operator for Widgets, with and without webhooks."""

from __future__ import annotations

import functools
from typing import Any

from ostinato import CustomResource, Struct
from ostinato.crd import Access, crd_of
from ostinato.packaging import (
    OWN_NAMESPACE,
    Operator,
    Package,
    Project,
    WebhookServer,
    make_package,
    parse_overrides,
)
from ostinato.webhook.configuration import ServiceEndpoint, webhook_configurations
from ostinato.webhook.hooks import validator

IMAGE = "registry.example.com/widgets:1.2.3"


class WidgetSpec(Struct):
    """What a widget should be."""

    size: int = 1
    """How large it is."""


class WidgetStatus(Struct):
    """What a widget is."""

    ready: bool = False
    """Whether it works."""


class Widget(CustomResource, group="example.dev", version="v1"):
    """A widget."""

    spec: WidgetSpec
    status: WidgetStatus | None = None


@validator(Widget)
def check_widget(widget: Widget) -> None: ...


RULES = [
    Access(groups=("example.dev",), resources=("widgets",), verbs=("get", "list", "watch", "patch")),
    Access(groups=("",), resources=("secrets",), verbs=("get",), namespace="vault"),
    Access(groups=("",), resources=("configmaps",), verbs=("get",), namespace=OWN_NAMESPACE),
]


@functools.cache
def _definition() -> dict[str, Any]:
    return crd_of(Widget)


def server(certificates: str = "", *, namespace: str = "widgets-system") -> WebhookServer:
    endpoint = ServiceEndpoint(namespace, "widgets-webhooks")
    return WebhookServer(
        name="widgets",
        endpoint=endpoint,
        port=9443,
        configurations=webhook_configurations([check_widget], "widgets", endpoint),
        certificates=certificates,
    )


def operator(**fields: Any) -> Operator:
    values: dict[str, Any] = {
        "program": ["shop.widgets"],
        "definitions": [_definition()],
        "owned": {"widgets.example.dev": [("apps/v1", "Deployment")]},
        "rules": RULES,
    }
    return Operator(**(values | fields))


def package(*, of: Operator | None = None, project: Project | None = None, **overrides: Any) -> Package:
    """Return a package. `overrides`: the fields of `deploy/overrides.yaml`."""
    chosen = parse_overrides({"image": IMAGE, **overrides}, "overrides.yaml")
    known = project or Project(name="widgets", version="1.2.3", description="Widgets for everyone")
    return make_package(of or operator(), chosen, known, "overrides.yaml")
