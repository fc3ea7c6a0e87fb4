"""Operators with the same task: Ostinato beside kopf and controller-runtime, alternating, in one run.

    python -m bench.operators [--real PROGRAM | --kubeconfig FILE] [--objects 5000] [--rounds 2] [--only NAME ...]

The benchmark creates custom resources and starts an operator in its own process, which creates an owned ConfigMap for
each resource and writes its status. It measures the time from the start until the last status is written, and the
processor time and memory of the operator's process. Then it deletes everything, and the next operator starts in another
namespace of the same server.

- The server is an `ostinato apiserver`, started here. With `--real`, a first run uses kube-apiserver and etcd:
  `PROGRAM up DIR --bare` writes `admin.kubeconfig` to DIR, `PROGRAM down DIR` stops them. With `--kubeconfig`, that
  server is used, in the namespaces `operators-N`.
- "creating" sends the same requests as controller-runtime's operator; "posting" those of kopf's, and does not watch
  ConfigMaps.
- "one process" is Ostinato's operator in one process with its server. The server runs and has the Gadgets before the
  operator starts. The other operators use HTTPS.
- kopf runs in its own virtual environment, created on first use: once as usual, with the official asyncio client; once
  "bare", without logs and events and with plain HTTP requests. It does not watch ConfigMaps. The client of
  controller-runtime has no rate limit. Operators that cannot run, without Go or kopf, are skipped with the reason.
- `--resync 20000` instead counts the requests of a resync of unchanged objects.

Bytecode is compiled first, as for an installed package. The best round of each operator counts.
"""

from __future__ import annotations


def main() -> None:
    from bench.operators.run import main  # here, or each operator would load the benchmark

    main()
