"""OpenAPI: the schemas and operations of what is served, as documents in version 2 and version 3."""

from ostinato.server.publish.openapi.answers import OpenAPIAnswers

__all__ = ["OpenAPIAnswers"]
