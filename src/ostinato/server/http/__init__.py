"""HTTP adapter of the API server and of node agents: HTTP/1.1 over TLS, and watches over WebSocket.

| module | contents |
|---|---|
| `server` | the server: deadlines, graceful stop |
| `listener` | accepting, TLS handshakes, limits for unauthenticated clients |
| `client_certificates`, `serving_certificates` | TLS contexts |
| `connection` | one client: requests in order |
| `response_writer`, `head` | responses |
| `upgraded` | connections after an upgrade |
| `closed`, `memory` | memory of closed connections |

The protocol is `ostinato.http` on asyncio: a general HTTP library takes as long to import as the rest of the server,
and half of the time of a get.
"""

from ostinato.server.http.server import HttpServer

__all__ = ["HttpServer"]
