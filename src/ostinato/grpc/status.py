"""Status codes of gRPC, and the error of a failed call."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Code(IntEnum):
    """The status of a call."""

    OK = 0
    CANCELED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class RpcError(Exception):
    """A failed call: status code and message.

    - `is_of_server`: the server sent this status; otherwise it was found here.
    - `may_have_run`: the server may have run the call. False: it has certainly not.
    """

    def __init__(self, code: int, message: str, *, is_of_server: bool = False, may_have_run: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.is_of_server = is_of_server
        self.may_have_run = may_have_run


_GO_NAMES: Final = {Code.OK: "OK"} | {
    code: "".join(word.capitalize() for word in code.name.split("_")) for code in Code if code
}


def go_error(error: RpcError) -> str:
    """Format an error as Go's gRPC library does."""
    name = _GO_NAMES[Code(error.code)] if error.code in _GO_NAMES else f"Code({error.code})"
    return f"rpc error: code = {name} desc = {error}"
