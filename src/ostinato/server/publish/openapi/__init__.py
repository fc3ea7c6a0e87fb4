"""OpenAPI: schemas and operations of the served resources, as OpenAPI v2 and v3 documents."""

from ostinato.server.publish.openapi.handler import OpenAPIHandler

__all__ = ["OpenAPIHandler"]
