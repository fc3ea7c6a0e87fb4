"""Audit: policy, events and backends.

| module | contains |
|---|---|
| `settings` | the --audit-* options |
| `policy` | the policy file and rule evaluation |
| `record` | data collected of one request while it is served |
| `masking` | removal of Secret data and tokens |
| `event` | encoding as audit.k8s.io/v1 Event |
| `log_file` | rotated log file, standard output |
| `backends` | log and webhook backend, blocking or batched |
| `auditor` | called by the server at each stage |
"""
