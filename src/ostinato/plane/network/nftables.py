"""The nf_tables rules of a Pod network: source NAT for what leaves the machine, and no way in.

A table of each IP version holds two chains, as `nft list table ip NAME` shows them:

    chain postrouting { type nat hook postrouting priority 100;
        ip saddr PODS oifname != "ost*" masquerade }
    chain forward { type filter hook forward priority 0;
        iifname != "ost*" oifname BRIDGE ct state & (established | related) == 0 drop }

"ost*" are Ostinato's own links: bridges of Pods, and the link of the Services. Traffic between them keeps its
addresses.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ostinato.plane.network import nf_messages as nf
from ostinato.plane.network.netlink import Network

LINK_PREFIX: Final = "ost"  # of the names of all links that are Ostinato's

_SOURCE_NAT, _FILTER = 100, 0  # priorities


def install(table: str, bridge: str, pods: Network, *, reachable: bool = False) -> None:
    """Create a table for the Pods of a bridge, in place of one of the same name. OSError if the kernel refuses it.

    `reachable`: other machines may connect to the Pods: nothing is dropped. Defaults to False.
    """
    of_pods = nf.Table(table, pods.version)
    is_foreign = nf.compare(nf.NOT_EQUAL, LINK_PREFIX.encode())
    masquerade = [*of_pods.is_in(nf.SOURCE, pods), nf.meta(nf.OUTPUT_NAME), is_foreign, nf.masquerade()]
    drop = [
        *(nf.meta(nf.INPUT_NAME), is_foreign),
        *(nf.meta(nf.OUTPUT_NAME), nf.compare(nf.EQUAL, nf.link_name(bridge))),
        *nf.connection_is(nf.ESTABLISHED | nf.RELATED, nf.EQUAL),
        nf.verdict(nf.DROP),
    ]
    nf.commit(
        [
            *of_pods.replace(),
            of_pods.base_chain("postrouting", b"nat", nf.POSTROUTING, _SOURCE_NAT),
            of_pods.base_chain("forward", b"filter", nf.FORWARD, _FILTER),
            of_pods.rule("postrouting", *masquerade),
            *([] if reachable else [of_pods.rule("forward", *drop)]),
        ]
    )


def remove(table: str) -> None:
    """Remove the tables of a name, one of each IP version, if there are any and this process may."""
    for version in nf.FAMILIES:
        with suppress(OSError):
            nf.commit([nf.Table(table, version).remove()])
