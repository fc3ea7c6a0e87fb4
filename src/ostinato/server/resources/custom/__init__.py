"""Custom resources: the kinds that CustomResourceDefinitions define, as the server serves them."""

from ostinato.server.resources.custom.conversion import Conversion
from ostinato.server.resources.custom.conversion_review import Conversions
from ostinato.server.resources.custom.definition import Definition, Version
from ostinato.server.resources.custom.resource import CustomResource

__all__ = ["Conversion", "Conversions", "CustomResource", "Definition", "Version"]
