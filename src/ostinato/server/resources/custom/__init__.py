"""Custom resources: resources defined by CustomResourceDefinitions."""

from ostinato.server.resources.custom.conversion import Conversion
from ostinato.server.resources.custom.conversion_review import Conversions
from ostinato.server.resources.custom.definition import Definition, Version
from ostinato.server.resources.custom.resource import CustomResource

__all__ = ["Conversion", "Conversions", "CustomResource", "Definition", "Version"]
