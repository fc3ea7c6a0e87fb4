"""The apiextensions group: CustomResourceDefinitions."""

from ostinato.server.resources.apiextensions.strategy import CustomResourceDefinition
from ostinato.server.resources.strategy import Strategy

STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("apiextensions.k8s.io", "customresourcedefinitions"): CustomResourceDefinition(),
}
