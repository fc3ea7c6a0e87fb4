"""The transport over HTTP/1.1 and TLS: connections, pool, requests and responses."""
