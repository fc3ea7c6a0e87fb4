"""Messages with a custom JSON form: Quantity, Time, MicroTime, IntOrString, and embedded JSON.

- `READERS` convert the fields of such a message to its JSON value, `WRITERS` convert it back.
- `RAW` are messages with a document in their only field.
- Times before the year 1 and after 9999 cannot be represented in JSON, and are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.api.protobuf.tables import META
from ostinato.api.text.short_cache import short_cache
from ostinato.api.time import Duration, MicroTime, Time, TimeError
from ostinato.api.wire.json import DecodeError

_APIEXTENSIONS: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions."
_QUANTITY: Final = "k8s.io.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "k8s.io.apimachinery.pkg.util.intstr.IntOrString"
_RAW_EXTENSION: Final = "k8s.io.apimachinery.pkg.runtime.RawExtension"

RAW: Final = frozenset(
    {
        _RAW_EXTENSION,
        META + "FieldsV1",
        _APIEXTENSIONS + "v1.JSON",
        _APIEXTENSIONS + "v1beta1.JSON",
    }
)


def _quantity(fields: Mapping[str, Any]) -> str:
    text: str = fields.get("string", "")
    return text or "0"


def _int_or_string(fields: Mapping[str, Any]) -> int | str:
    value: int | str = fields.get("strVal", "") if fields.get("type") == 1 else fields.get("intVal", 0)
    return value


def _time(fields: Mapping[str, Any]) -> str | None:
    return str(_moment(Time, fields, 0)) if fields else None


def _micro_time(fields: Mapping[str, Any]) -> str | None:
    return str(_moment(MicroTime, fields, fields.get("nanos", 0))) if fields else None


def _moment(kind: type[Time | MicroTime], fields: Mapping[str, Any], nanos: int) -> Time | MicroTime:
    try:
        return kind.from_unix(fields.get("seconds", 0), nanos)
    except (TimeError, ValueError, OverflowError):
        raise DecodeError("proto: time out of range") from None


def _duration(fields: Mapping[str, Any]) -> str:
    return str(Duration(fields.get("duration", 0)))


def _schema_or_bool(fields: Mapping[str, Any]) -> Any:
    return fields["schema"] if "schema" in fields else fields.get("allows", False)


def _schema_or_array(fields: Mapping[str, Any]) -> Any:
    return fields["jSONSchemas"] if "jSONSchemas" in fields else fields.get("schema")


def _schema_or_strings(fields: Mapping[str, Any]) -> Any:
    return fields["property"] if "property" in fields else fields.get("schema")


READERS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    _QUANTITY: _quantity,
    _INT_OR_STRING: _int_or_string,
    META + "Time": _time,
    META + "MicroTime": _micro_time,
    META + "Duration": _duration,
}


def _quantity_fields(value: Any) -> dict[str, Any]:
    return {"string": "0" if value is None else str(value)}


def _int_or_string_fields(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": 1, "intVal": 0, "strVal": value}
    return {"type": 0, "intVal": 0 if value is None else value, "strVal": ""}


def _time_fields(value: Any) -> dict[str, Any]:
    return {} if value is None else _fields_of_time(value)


@short_cache(256)  # objects have the same time several times, and those of a moment have the same
def _fields_of_time(text: str) -> dict[str, Any]:
    moment = Time.parse(text)
    return {} if moment.is_zero else {"seconds": moment.to_unix()[0], "nanos": 0}


def _micro_time_fields(value: Any) -> dict[str, Any]:
    moment = MicroTime.parse(value) if value is not None else None
    if moment is None or moment.is_zero:
        return {}
    seconds, nanos = moment.to_unix()
    return {"seconds": seconds, "nanos": nanos}


def _duration_fields(value: Any) -> dict[str, Any]:
    return {"duration": 0 if value is None else Duration.parse(value).nanoseconds}


def _schema_or_bool_fields(value: Any) -> dict[str, Any]:
    return {"allows": True, "schema": value} if isinstance(value, Mapping) else {"allows": bool(value)}


def _schema_or_array_fields(value: Any) -> dict[str, Any]:
    return {"jSONSchemas": value} if isinstance(value, list) else {"schema": value}


def _schema_or_strings_fields(value: Any) -> dict[str, Any]:
    return {"property": value} if isinstance(value, list) else {"schema": value}


WRITERS: Final[dict[str, Callable[[Any], dict[str, Any]]]] = {
    _QUANTITY: _quantity_fields,
    _INT_OR_STRING: _int_or_string_fields,
    META + "Time": _time_fields,
    META + "MicroTime": _micro_time_fields,
    META + "Duration": _duration_fields,
}

for _version in ("v1.", "v1beta1."):
    _package = _APIEXTENSIONS + _version
    READERS[_package + "JSONSchemaPropsOrBool"] = _schema_or_bool
    READERS[_package + "JSONSchemaPropsOrArray"] = _schema_or_array
    READERS[_package + "JSONSchemaPropsOrStringArray"] = _schema_or_strings
    WRITERS[_package + "JSONSchemaPropsOrBool"] = _schema_or_bool_fields
    WRITERS[_package + "JSONSchemaPropsOrArray"] = _schema_or_array_fields
    WRITERS[_package + "JSONSchemaPropsOrStringArray"] = _schema_or_strings_fields
