"""Error of malformed HTTP."""

from __future__ import annotations


class InvalidHttp(ConnectionError):  # noqa: N818
    """The peer sent data that is not well-formed HTTP/1.1; its connection cannot be used any more.

    - `status`: with which a server responds. Defaults to 400.
    - `detail`: the reason in that response, in the words of Go's net/http. Defaults to none.
    """

    def __init__(self, reason: str, *, status: int = 400, detail: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.detail = detail
