"""HTTP: the adapter between a socket and the core. HTTP/1.1 over TLS, watches over WebSocket, too.

The protocol is our own, on asyncio alone: a general HTTP library costs as much to import as the rest of the server
together, and half of the time of a `get`. `parser` knows what a request looks like on the wire, `head` what an answer
does, `connection` is one client, `server` listens.
"""

from ostinato.server.http.server import HttpServer

__all__ = ["HttpServer"]
