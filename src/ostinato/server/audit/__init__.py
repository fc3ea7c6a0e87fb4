"""Audit: which requests are recorded, what of them, and where the events go.

| module | is |
|---|---|
| `settings` | what an operator decides |
| `policy` | the policy file: which rule a request falls under |
| `record` | one request, while it is served |
| `masking` | what is never written: Secrets' data and tokens |
| `event` | a record as an audit.k8s.io/v1 Event |
| `log_file` | the log: a file that is rotated, or standard output |
| `backends` | where events go: the log and the webhook, at once or in batches |
| `auditor` | what the server calls at each stage |
"""
