"""Webhooks: calls to external servers for admission, conversion, authentication, authorization and audit.

| module | is |
|---|---|
| `target` | where a `clientConfig` points to |
| `services` | which endpoint stands for a Service |
| `trust` | whom to believe: CA bundles, and the names that a certificate is for |
| `client` | HTTPS: a review goes out, an answer comes back, or why not |
| `review` | the answer, read |
"""

from ostinato.server.webhooks.target import CallError, PostReview
from ostinato.server.webhooks.webhooks import Webhooks

__all__ = ["CallError", "PostReview", "Webhooks"]
