"""Non-resource endpoints: discovery, OpenAPI, version, health, metrics."""

from ostinato.server.publish.health import Health
from ostinato.server.publish.issuer import Issuer
from ostinato.server.publish.metrics import Metrics
from ostinato.server.publish.publisher import Publisher

__all__ = ["Health", "Issuer", "Metrics", "Publisher"]
