"""Docstrings: what a class and its attributes say of themselves, for the descriptions in schemas.

An attribute is described by the text below it:

    replicas: int = 1
    \"\"\"How many there are.\"\"\"
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise


def class_doc(cls: type) -> str:
    """The docstring that was written for the class itself; "" if there is none."""
    text = cls.__dict__.get("__doc__")
    if not isinstance(text, str) or text.startswith(f"{cls.__name__}("):  # what dataclasses write
        return ""
    return inspect.cleandoc(text)


def field_docs(cls: type) -> dict[str, str]:
    """By attribute, the texts below attributes, of the class and its bases. None where the source is not at hand."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ not in ("builtins", "msgspec", "pydantic.main", "typing"):
            docs |= _own_docs(base)
    return docs


def _own_docs(cls: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    docs: dict[str, str] = {}
    for attribute, text in pairwise(body):
        match attribute, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                docs[name] = inspect.cleandoc(doc)
    return docs
