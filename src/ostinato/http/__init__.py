"""HTTP/1.1 in both directions, for the client, the API server, webhook calls, proxies and probes.

| module | contents |
|---|---|
| `request` | parser of request heads, and the body of a request |
| `response` | parser of responses |
| `fields` | header fields of both |
| `body` | bodies of both: `Content-Length`, chunked, until the connection is closed |
| `encoding`, `status` | encoders of heads and chunks |
| `decompression` | gzip bodies |
| `hosts` | hosts and ports in URLs |
| `byte_stream`, `tls_stream` | client connections that are read on demand, plain and with TLS |
| `exchange` | responses on such connections |
| `server` | small server for webhooks, health and metrics |
| `websocket` | WebSocket frames and handshake |

The parsers do no I/O: they take bytes in pieces of any size. They are strict: what two implementations could read in
two ways is rejected with `InvalidHttp`, so that no peer can disagree about where a message ends. That covers line ends
without CR, folded lines, whitespace in names, control characters, several lengths, lengths and chunk sizes that are not
plain digits, and transfer codings other than `chunked`.
"""
