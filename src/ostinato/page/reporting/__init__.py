"""Reporting: from the controllers of a process to the page, which may be another process.

| module | contents |
|---|---|
| `reports` | what is sent |
| `reporter` | the observer of a process: collects reports and hands them over in batches |
| `sender` | sends batches to the page over its Unix socket |
"""
