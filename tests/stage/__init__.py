"""The shared stage of tests: servers, clients, transports and kinds, in one process.

- `server`: an API server with an in-memory store, in virtual or real time.
- `api`: raw requests to a server, for tests of `ostinato.server`.
- `transport`: transports that record, delay or fail requests, and transports with scripted responses.
- `kinds`: the custom resource `Widget`, its definition, and small objects.
- `client`: a server and a client in virtual time. The next three build on it.
- `controllers`: with informers, a cached client and the dependencies of a controller; also without a server.
- `election`: with candidates for a Lease.
- `plane`: with controllers of the control plane; in simulation, or over HTTPS (`over_http`, `jumping_loop`).
"""
