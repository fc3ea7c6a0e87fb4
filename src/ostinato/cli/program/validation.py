"""Judging: what an API server would say of definitions, before one is asked.

The rules are those of the embedded server, where that is installed (`ostinato[server]`): defaults that break rules,
rules that are no CEL or that may cost more than servers allow. Without it, definitions are judged by the server that
gets them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

from ostinato.cli.error import Failure

Json = dict[str, Any]

_MODEL: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
_IN_SCHEMA: Final = re.compile(r"spec\.(?:validation|versions\[(\d+)\]\.schema)\.openAPIV3Schema(.*)")
_STEPS: Final = re.compile(r"\.properties\[([^]]*)\]|\.(items)\b|\.(additionalProperties)\b")
_COST: Final = "estimated"  # the first word of what is said of rules that cost too much
_ADVICE: Final = "bound the lists, maps and texts that the rule goes through, and those around it, by Len(at_most=...)"


def judge(definition: Json) -> None:
    """Failure if a server would refuse the definition; it names the version, the field and what is wrong."""
    try:
        from ostinato.server.resources.apiextensions.strategy import CustomResourceDefinition  # noqa: PLC0415
        from ostinato.server.schema.decoding import builtin  # noqa: PLC0415 - who writes manifests may have no server
    except ImportError:
        return
    judged, _ = builtin.read(_MODEL, copy.deepcopy(definition))
    rules = CustomResourceDefinition()
    rules.default(judged)
    rules.prepare_create(judged)
    objections = list(dict.fromkeys(_told(definition, rules.validate(judged))))
    if objections:
        names = definition["spec"]["names"]
        raise Failure("\n  ".join([f"servers would refuse the definition of {names['kind']}:", *objections]))


def _told(definition: Json, errors: Any) -> Iterator[str]:
    """Errors with the way to the field as people write it: `spec.ports[].name`, `spec.limits{}`."""
    versions = [version["name"] for version in definition["spec"]["versions"]]
    for error in errors:
        body = error.detail.strip() or error.body
        if body.startswith(_COST):
            body = f"{body.partition(' (try')[0]}: {_ADVICE}"
        found = _IN_SCHEMA.fullmatch(error.field)
        if found is None:
            yield f"{error.field}: {body}"
            continue
        way = _STEPS.sub(lambda step: f".{step[1]}" if step[1] is not None else "[]" if step[2] else "{}", found[2])
        version = versions[int(found[1])] if found[1] else ", ".join(versions)
        yield f"{version}: {way.removeprefix('.') or 'the whole object'}: {body}"
