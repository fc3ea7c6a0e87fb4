"""Models: the fields of a class, whatever made it one.

- msgspec structs, `ostinato.api.struct.Struct` first: names on the wire as the class has them.
- Dataclasses: names on the wire are the attributes as they are, since that is how msgspec reads them.
- pydantic models: names on the wire are the aliases. pydantic is not imported here: who has a model has imported it.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from ostinato.crd.docstrings import field_docs
from ostinato.crd.place import Place

MISSING = msgspec.NODEFAULT


class ModelField(msgspec.Struct, frozen=True):
    """One field of a model."""

    attribute: str
    wire: str
    annotation: Any
    default: Any = MISSING  # a Python value
    factory: Callable[[], Any] | None = None
    doc: str = ""

    @property
    def required(self) -> bool:
        return self.default is MISSING and self.factory is None


def is_model(cls: Any) -> bool:
    return isinstance(cls, type) and (issubclass(cls, msgspec.Struct) or _is_dataclass(cls) or is_pydantic(cls))


def is_pydantic(cls: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def fields_of_model(cls: type, at: Place) -> list[ModelField]:
    """The fields in the order of the class."""
    docs = field_docs(cls)
    if is_pydantic(cls):
        return [_pydantic_field(name, info, docs.get(name, "")) for name, info in cls.model_fields.items()]  # type: ignore[attr-defined]
    hints = _hints(cls, at)
    if issubclass(cls, msgspec.Struct):
        return [
            ModelField(
                info.name,
                info.encode_name,
                hints[info.name],
                info.default,
                None if info.default_factory is msgspec.NODEFAULT else info.default_factory,
                docs.get(info.name, ""),
            )
            for info in msgspec.structs.fields(cls)
        ]
    return _dataclass_fields(cls, hints, docs)


def _hints(cls: type, at: Place) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise at.error(f"{error}; what annotations name must be known in the module of the class") from None
    except TypeError as error:
        raise at.error(f"an annotation cannot be read: {error}") from None


def _is_dataclass(cls: type) -> bool:
    return hasattr(cls, "__dataclass_fields__")


def _dataclass_fields(cls: type, hints: dict[str, Any], docs: dict[str, str]) -> list[ModelField]:
    import dataclasses  # noqa: PLC0415 - only for who uses them

    return [
        ModelField(
            field.name,
            field.name,
            hints[field.name],
            MISSING if field.default is dataclasses.MISSING else field.default,
            None if field.default_factory is dataclasses.MISSING else field.default_factory,
            docs.get(field.name, ""),
        )
        for field in dataclasses.fields(cls)
    ]


def _pydantic_field(name: str, info: Any, doc: str) -> ModelField:
    annotation = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    return ModelField(
        name,
        info.serialization_alias or info.alias or name,
        annotation,
        MISSING if info.is_required() or info.default_factory is not None else info.default,
        info.default_factory,
        info.description or doc,
    )
