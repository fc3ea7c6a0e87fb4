"""DNS server: answers queries from the zone of the cluster, and others with the help of upstream servers."""

from __future__ import annotations

import logging
from typing import Final

from ostinato.plane.network.dns import wire
from ostinato.plane.network.dns.upstream import Upstream, UpstreamBusy
from ostinato.plane.network.dns.wire import Query, Question, Record, Reply
from ostinato.plane.network.dns.zone import Found, Zone
from ostinato.world import Rng

_logger = logging.getLogger("ostinato.plane.dns")

_QUERY: Final = 0  # opcode
_LONGEST_CHAIN: Final = 8  # aliases


class DnsServer:
    def __init__(self, zone: Zone, upstream: Upstream, rng: Rng) -> None:
        self._zone = zone
        self._upstream = upstream
        self._rng = rng

    def answer(self, data: bytes, *, tcp: bool) -> bytes | None:
        """The response to a query; None if the query has to wait for an upstream server, see `wait_for_answer`.

        `MalformedMessage` if there is nothing to respond to.
        """
        query = wire.parse_query(data)
        reply = self._reply(query)
        return None if reply is None else _encoded(query, reply, tcp=tcp)

    async def wait_for_answer(self, data: bytes, *, tcp: bool) -> bytes:
        """The response to a query that needs upstream servers."""
        query = wire.parse_query(data)
        question = query.question
        assert question is not None
        found = self._zone.find(question)
        if found is not None:
            return _encoded(query, await self._follow(question, found), tcp=tcp)
        try:
            response = await self._upstream.forward(data, tcp=tcp)
        except UpstreamBusy:
            return _encoded(query, Reply(code=wire.REFUSED), tcp=tcp)
        return response or _encoded(query, Reply(code=wire.SERVER_FAILURE), tcp=tcp)

    def _reply(self, query: Query) -> Reply | None:
        question = query.question
        if query.opcode != _QUERY:
            return Reply(code=wire.NOT_IMPLEMENTED)
        if question is None:
            return Reply(code=wire.FORMAT_ERROR)
        if query.edns:
            return Reply(code=wire.BAD_VERSION)
        if question.cls != wire.IN or question.type == wire.AXFR:
            return Reply(code=wire.REFUSED)
        if not self._zone.is_ready:
            return Reply(code=wire.SERVER_FAILURE)
        found = self._zone.find(question)
        return None if found is None or found.alias is not None else self._complete(found)

    def _complete(self, found: Found) -> Reply:
        answers = list(found.answers)
        self._rng.shuffle(answers)
        return Reply(
            code=wire.NO_ERROR if found.exists else wire.NAME_ERROR,
            answers=tuple(answers),
            authority=() if answers else (self._zone.start_of_authority,),
            additional=found.additional,
            authoritative=True,
        )

    async def _follow(self, question: Question, found: Found) -> Reply:
        """Append the records that an alias leads to."""
        answers: list[Record] = []
        for _ in range(_LONGEST_CHAIN):
            answers += found.answers
            if found.alias is None:
                code = wire.NO_ERROR if found.exists else wire.NAME_ERROR
                return Reply(code=code, answers=tuple(answers), authoritative=True)
            next_question = Question(found.alias, question.type, question.cls)
            further = self._zone.find(next_question)
            if further is None:
                code, records = await self._upstream.resolve(next_question)
                return Reply(code=code, answers=(*answers, *records))
            found = further
        _logger.warning("alias leads to itself name=%s", b".".join(question.name).decode("ascii", "replace"))
        return Reply(code=wire.SERVER_FAILURE, answers=tuple(answers[:1]))


def _encoded(query: Query, reply: Reply, *, tcp: bool) -> bytes:
    return wire.encode_reply(query, reply, wire.LARGEST if tcp else query.limit)
