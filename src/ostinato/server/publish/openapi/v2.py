"""Path items of OpenAPI v2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.server.publish.openapi.custom import V2
from ostinato.server.publish.openapi.operations import PARAMETER_TYPES, Operation, Path
from ostinato.server.publish.openapi.path_item import DESCRIPTIONS, complete_operation, write_path

Json = dict[str, Any]


def path_item(path: Path) -> Json:
    """The item of one path."""
    return write_path(path, _parameter, _operation)


def described_parameters(descriptions: Mapping[str, str]) -> Json:
    """The query parameters with their descriptions, by name. Once in the document: operations do not repeat them."""
    return {name: {**_parameter(name, "query"), "description": text} for name, text in descriptions.items()}


def _parameter(name: str, place: str) -> Json:
    return {"uniqueItems": True, "type": PARAMETER_TYPES.get(name, "string"), "name": name, "in": place}


def _operation(path: Path, operation: Operation) -> Json:
    written: Json = {
        "consumes": operation.consumes,
        "produces": operation.produces,
        "schemes": ["https"],
        "tags": [path.tag],
        "operationId": operation.identifier,
    }
    # Old versions of kubectl do not resolve references to parameters: they are inlined in each operation.
    parameters = [_parameter(name, "query") for name in operation.parameters]
    if operation.body:
        body: Json = {"name": "body", "in": "body", "schema": {"$ref": V2 + operation.body}}
        if operation.body_required:
            body["required"] = True
        parameters.insert(0, body)
    if parameters:
        written["parameters"] = parameters
    responses: Json = {code: _response(code, definition) for code, definition in operation.answers}
    return complete_operation(written, operation, responses)


def _response(code: str, definition: str) -> Json:
    schema = {"$ref": V2 + definition} if definition else {"type": "string"}
    return {"description": DESCRIPTIONS[code], "schema": schema}
