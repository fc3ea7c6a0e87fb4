"""API aggregation: group versions that extension API servers serve behind this one, as kube-aggregator.

| module | contains |
|---|---|
| `api_services` | the stored APIServices: which group versions are served elsewhere, and the priorities of all |
| `front_proxy` | how this server identifies itself and the user to extension servers |
| `backends` | the address of an extension server: resolved, checked, with its TLS context |
| `proxy` | forwarding of requests |
| `fetch` | this server's own requests to extension servers |
| `availability` | the Available condition |
| `remote_discovery` | discovery documents of extension servers |
| `remote_openapi` | OpenAPI documents of extension servers |
| `monitor` | the tasks that keep all of this up to date for one APIService |
| `aggregator` | the parts together |
"""
