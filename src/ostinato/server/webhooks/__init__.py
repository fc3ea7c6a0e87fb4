"""Webhooks: calls to external servers for admission, conversion, authentication, authorization and audit.

| module | contains |
|---|---|
| `target` | `clientConfig` parsed: URL or Service, CA bundle |
| `trust` | TLS contexts, host name verification |
| `identity` | client credentials from kubeconfig files |
| `client` | HTTPS client: connection reuse, timeouts, size limits |
| `webhooks` | the server's client, imported with the first call |
| `review` | decoding of responses |
"""

from ostinato.server.webhooks.target import CallError, PostReview
from ostinato.server.webhooks.webhooks import Webhooks

__all__ = ["CallError", "PostReview", "Webhooks"]
