"""Models: the fields of structs, dataclasses and pydantic models.

- msgspec structs, `ostinato.api.struct.Struct` first: the wire names of the class.
- Dataclasses: the attribute names are the wire names, as msgspec decodes them.
- pydantic models: the aliases are the wire names. pydantic is not imported here.
- Generic models have the fields with their type arguments (`ostinato.api.serializer.generics`).
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from ostinato.api.markers import Example, Title
from ostinato.api.serializer.generics import class_of, hints_of
from ostinato.crd.schema.docstrings import field_docs
from ostinato.crd.schema.place import Place, SchemaError

MISSING = msgspec.NODEFAULT


class ModelField(msgspec.Struct, frozen=True):
    """One field of a model."""

    attribute: str
    wire: str
    annotation: Any
    default: Any = MISSING  # a Python value
    factory: Callable[[], Any] | None = None
    doc: str = ""
    left_out: bool = False  # whether it is omitted at its default

    @property
    def required(self) -> bool:
        return self.default is MISSING and self.factory is None


def is_model(cls: Any) -> bool:
    cls = class_of(cls)
    return isinstance(cls, type) and (issubclass(cls, msgspec.Struct) or _is_dataclass(cls) or is_pydantic(cls))


def is_pydantic(cls: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def keeps_unknown(cls: type) -> bool:
    """Whether a model keeps unknown fields (`extra="allow"`)."""
    return is_pydantic(cls) and cls.model_config.get("extra") == "allow"  # type: ignore[attr-defined]


def root_of(model: Any) -> Any:
    """Return the root type of a pydantic RootModel; None for any other."""
    if (
        not isinstance(model, type)
        or not is_pydantic(model)
        or not issubclass(model, sys.modules["pydantic"].RootModel)
    ):
        return None
    (root,) = fields_of_model(model, Place(model.__name__))
    return root.annotation


def fields_of_model(model: Any, at: Place) -> list[ModelField]:
    """Return the fields in class order."""
    cls = class_of(model)
    docs = field_docs(cls)
    if is_pydantic(cls):
        try:
            cls.model_rebuild()  # resolves forward references
        except NameError as error:
            raise _unknown(error, at) from None
        _check_bytes(cls, at)
        return _pydantic_fields(cls.model_fields, docs)
    if "__pydantic_fields__" in vars(cls):  # a pydantic dataclass
        return _pydantic_fields(cls.__pydantic_fields__, docs)
    hints = _hints(model, at)
    if issubclass(cls, msgspec.Struct):
        return [
            ModelField(
                info.name,
                info.encode_name,
                hints[info.name],
                info.default,
                None if info.default_factory is msgspec.NODEFAULT else info.default_factory,
                docs.get(info.name, ""),
                (cls.__struct_config__.omit_defaults or info.name in getattr(cls, "__value_defaults__", ()))
                and info.default_factory in (msgspec.NODEFAULT, list, dict, set),
            )
            for info in msgspec.structs.fields(cls)
        ]
    return _dataclass_fields(cls, hints, docs)


def _hints(model: Any, at: Place) -> dict[str, Any]:
    try:
        return hints_of(model)
    except NameError as error:
        raise _unknown(error, at) from None
    except TypeError as error:
        raise at.error(f"cannot evaluate an annotation: {error}") from None


def _unknown(error: NameError, at: Place) -> SchemaError:
    return at.error(f"{error}; annotations must be resolvable in the module of the class")


def _is_dataclass(cls: type) -> bool:
    return hasattr(cls, "__dataclass_fields__")


def _dataclass_fields(cls: type, hints: dict[str, Any], docs: dict[str, str]) -> list[ModelField]:
    import dataclasses  # noqa: PLC0415 - rarely needed

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


def _check_bytes(cls: Any, at: Place) -> None:
    """Raise SchemaError for bytes fields of models that do not encode them as base64."""
    if {cls.model_config.get(f"{way}_json_bytes") for way in ("ser", "val")} == {"base64"}:
        return
    for name, info in cls.model_fields.items():
        if bytes in (info.annotation, *typing.get_args(info.annotation)):
            raise at.of_field(name, name).error(
                'bytes are not base64 in this model, as Kubernetes requires: set ser_json_bytes="base64" and '
                'val_json_bytes="base64" in its model_config'
            )


def _pydantic_fields(infos: dict[str, Any], docs: dict[str, str]) -> list[ModelField]:
    return [
        ModelField(
            name,
            info.serialization_alias or info.alias or name,
            _pydantic_annotation(info),
            MISSING if info.is_required() or info.default_factory is not None else info.default,
            info.default_factory,
            info.description or docs.get(name, ""),
        )
        for name, info in infos.items()
    ]


def _pydantic_annotation(info: Any) -> Any:
    said = [*info.metadata]
    if info.title:
        said.append(Title(info.title))
    if info.examples:
        said.append(Example(info.examples[0]))
    return Annotated[(info.annotation, *said)] if said else info.annotation
