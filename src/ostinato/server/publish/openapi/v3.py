"""Path items of OpenAPI v3."""

from __future__ import annotations

from typing import Any

from ostinato.server.publish.openapi.custom import V3
from ostinato.server.publish.openapi.operations import PARAMETER_TYPES, Operation, Path
from ostinato.server.publish.openapi.path_item import DESCRIPTIONS, complete_operation, write_path

Json = dict[str, Any]


def path_item(path: Path) -> Json:
    """The item of one path."""
    return write_path(path, _parameter, _operation)


def _parameter(name: str, place: str) -> Json:
    return {"name": name, "in": place, "schema": {"type": PARAMETER_TYPES.get(name, "string"), "uniqueItems": True}}


def _operation(path: Path, operation: Operation) -> Json:
    written: Json = {"tags": [path.tag], "operationId": operation.identifier}
    if operation.parameters:
        written["parameters"] = [_parameter(name, "query") for name in operation.parameters]
    if operation.body:
        schema = {"schema": {"$ref": V3 + operation.body}}
        written["requestBody"] = {"content": dict.fromkeys(operation.consumes, schema)}
        if operation.body_required:
            written["requestBody"]["required"] = True
    responses: Json = {code: _response(operation, code, definition) for code, definition in operation.answers}
    return complete_operation(written, operation, responses)


def _response(operation: Operation, code: str, definition: str) -> Json:
    schema = {"schema": {"$ref": V3 + definition} if definition else {"type": "string"}}
    return {"description": DESCRIPTIONS[code], "content": dict.fromkeys(operation.produces, schema)}
