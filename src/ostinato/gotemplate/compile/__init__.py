"""Syntax trees to Python closures.

A closure takes a frame and the dot. The frame is a list: the function that appends to the output, the state, the
variables in the order in which they are declared; a variable is known by its index.
"""

from ostinato.gotemplate.compile.statements import compiled

__all__ = ["compiled"]
