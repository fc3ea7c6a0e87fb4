"""Non-resource endpoints: discovery, OpenAPI, version, health, metrics, pages for debugging."""

from ostinato.server.publish.health import Health
from ostinato.server.publish.issuer import Issuer
from ostinato.server.publish.metrics import Metrics
from ostinato.server.publish.publisher import PROFILES, Publisher
from ostinato.server.publish.zpages import ZPages

__all__ = ["PROFILES", "Health", "Issuer", "Metrics", "Publisher", "ZPages"]
