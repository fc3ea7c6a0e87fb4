"""Python source of the classes for a kind that somebody else defined: readable, and safe whatever it says."""

from ostinato.crd.source.module import TypesError, types_of

__all__ = ["TypesError", "types_of"]
