"""Source generator: Python classes from third-party CustomResourceDefinitions, safe for untrusted input."""

from ostinato.crd.source.module import TypesError, types_of

__all__ = ["TypesError", "types_of"]
