"""What the server publishes about itself: discovery, OpenAPI, version, health, metrics."""

from ostinato.server.publish.publisher import Publisher

__all__ = ["Publisher"]
