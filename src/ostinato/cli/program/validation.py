"""Validate CustomResourceDefinitions as an API server would, before they are written or applied.

- Uses the validation of the embedded server, if `ostinato[server]` is installed: invalid defaults, CEL rules that do
  not compile or exceed the cost budget.
- Without it, the API server that receives the definitions validates them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

from ostinato.cli.error import CommandError

Json = dict[str, Any]

_MODEL: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
_IN_SCHEMA: Final = re.compile(r"spec\.(?:validation|versions\[(\d+)\]\.schema)\.openAPIV3Schema(.*)")
_STEPS: Final = re.compile(r"\.properties\[([^]]*)\]|\.(items)\b|\.(additionalProperties)\b")
_COST: Final = "estimated"  # first word of the error for rules over the cost budget
_ADVICE: Final = "bound the lists, maps and strings that the rule iterates, and those around it, with Len(at_most=...)"


def validate_definition(definition: Json) -> None:
    """Raise CommandError if an API server would reject the definition; it names version, field and problem."""
    try:
        from ostinato.server.resources.apiextensions.strategy import CustomResourceDefinition  # noqa: PLC0415
        from ostinato.server.schema.decoding import builtin  # noqa: PLC0415 - optional: needs ostinato[server]
    except ImportError:
        return
    created, _ = builtin.read(_MODEL, copy.deepcopy(definition))
    strategy = CustomResourceDefinition()
    strategy.default(created)
    strategy.prepare_create(created)
    messages = list(dict.fromkeys(_messages(definition, strategy.validate(created))))
    if messages:
        kind = definition["spec"]["names"]["kind"]
        raise CommandError(
            "\n  ".join([f"CustomResourceDefinition of {kind}: an API server would reject it:", *messages])
        )


def _messages(definition: Json, errors: Any) -> Iterator[str]:
    """Format errors with the field's path in the object: `spec.ports[].name`, `spec.limits{}`."""
    versions = [version["name"] for version in definition["spec"]["versions"]]
    for error in errors:
        body = error.detail.strip() or error.body
        if body.startswith(_COST):
            body = f"{body.partition(' (try')[0]}: {_ADVICE}"
        found = _IN_SCHEMA.fullmatch(error.field)
        if found is None:
            yield f"{error.field}: {body}"
            continue
        path = _STEPS.sub(lambda step: f".{step[1]}" if step[1] is not None else "[]" if step[2] else "{}", found[2])
        version = versions[int(found[1])] if found[1] else ", ".join(versions)
        yield f"{version}: {path.removeprefix('.') or 'object'}: {body}"
