"""Operators that do the same work: Ostinato's beside kopf's and controller-runtime's, in turns, in one run.

    python -m bench.operators [--real PROGRAM | --kubeconfig FILE] [--objects 5000] [--rounds 2] [--only NAME ...]

Custom resources are made; then an operator is started, in a process of its own, which gives each of them a ConfigMap
that it owns and a status. The time from its start until the last status is written counts, and what its process has
used of processor and memory by then. Everything is deleted, and the next one starts, in another namespace of the same
server.

- The server is an `ostinato apiserver`, started here. With `--real` it is kube-apiserver and etcd in a first run, and
  ours in a second: `PROGRAM up DIR --bare` leaves `admin.kubeconfig` in DIR, `PROGRAM down DIR` ends them. With
  `--kubeconfig` it is that one, in its namespaces `operators-N`.
- "creating" sends the requests that controller-runtime's operator sends; "posting" does just what kopf's does, and
  watches no ConfigMaps either.
- "one process" is our operator in one process with a server of its own, which runs and has the Gadgets before the
  operator starts, as it is with the others. Those talk to the server over HTTPS, as kopf must.
- kopf runs in an environment of its own, which is made at first use: as people write it, with the official client for
  asyncio; and bare, without the logs and events that it writes of each handler, and with HTTP by hand. It watches no
  ConfigMaps, which the others do. controller-runtime's client does not hold itself back. Where there is no Go, or kopf
  cannot be had, that side is left out, with a word about why.
- `--resync 20000` measures, in place of this, what a resync of so many objects sends when nothing is to be done.

Python's bytecode is compiled before, as it is of a package that pip has installed.

The best round of each counts: what else the machine does can only make it worse.
"""

from __future__ import annotations


def main() -> None:
    from bench.operators.run import main  # here, or each operator would load the benchmark

    main()
