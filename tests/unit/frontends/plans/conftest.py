"""Packages and states for tests of plans."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ostinato.client.views import Unstructured
from ostinato.frontends.plans.package.files import parse_files
from ostinato.frontends.plans.package.resources import Package, package_of

INSTANCE = Unstructured.of("kudo.dev/v1beta1", "Instance")


def make_package(operator: str, params: str = "parameters: []", **templates: str) -> Package:
    """Return a package of files; templates by name, without .yaml."""
    files = {"operator.yaml": operator, "params.yaml": params}
    files |= {f"templates/{name}.yaml": text for name, text in templates.items()}
    return package_of(parse_files({name: text.encode() for name, text in files.items()}, "package"))


Reach = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def reach(client: Any, eventually: Any) -> Reach:
    """Wait until a plan of an object has a state, and return the object."""

    async def wait(name: str, plan: str, state: str, kind: Any = INSTANCE) -> dict[str, Any]:
        async def found() -> Any:
            instance = await client.get(kind, name, missing=None) or {}
            plans = (instance.get("status") or {}).get("planStatus") or {}
            return instance if plans.get(plan, {}).get("status") == state else None

        result: dict[str, Any] = await eventually(found)
        return result

    return wait
