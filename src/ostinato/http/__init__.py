"""HTTP/1.1 for clients and servers: heads, bodies, limits, byte streams and WebSocket frames."""
