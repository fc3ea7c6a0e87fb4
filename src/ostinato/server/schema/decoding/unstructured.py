"""Type errors of a strategic merge patch, with kube-apiserver's messages.

kube-apiserver converts the result of such a patch with FromUnstructured instead of the JSON decoder; its messages
differ.
"""

from __future__ import annotations

from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch

_KINDS = {str: "string", bool: "bool", int: "int64", float: "float64", list: "slice", dict: "map"}


def restore_error(error: TypeMismatch | BadValue) -> str:
    if isinstance(error, BadValue):
        text = str(error)
        return f"error decoding from json: {text}" if text.startswith("illegal base64") else text
    into = error.into
    if not into:
        return f"json: cannot unmarshal {error.found} into Go value of type {error.go_type}"
    given = _KINDS[type(error.value)]
    if into == "struct":
        return f"cannot restore struct from: {given}"
    if into in ("map", "slice"):
        return f"cannot restore {into} from {given}"
    if (into, given) == ("string", "int64") or (into.startswith("int") and given in ("int64", "float64")):
        return f"cannot convert {given} to {error.go_type}"
    return f"unrecognized type: {into}"
