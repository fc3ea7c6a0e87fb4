"""Seeded runs of the parser fuzzers, without a fuzzer. `--fuzz N` runs N mutations of each input."""

from __future__ import annotations

import pytest

from ostinato.streams.spdy_frames import FrameWriter, data_frame, go_away, ping, reset
from tests.fuzz.mutate import Mutator
from tests.fuzz.parsers import TARGETS, check
from tests.fuzz.test_harness import CORPUS as DOCUMENTS


def _spdy() -> bytes:
    writer = FrameWriter()
    begun = writer.open(1, {"streamtype": "stdin", "port": "80"}) + writer.accept(1)
    return begun + data_frame(1, b"hello", last=True) + ping(1) + reset(1, 5) + go_away(1)


def _masked(opcode: int, payload: bytes) -> bytes:
    mask = b"\x01\x02\x03\x04"
    return bytes((0x80 | opcode, 0x80 | len(payload))) + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(payload))


_DNS_QUERY = bytes.fromhex("000701000001000000000001037765620764656661756c7400000100010000290400000000000000")
_DNS_ANSWER = bytes.fromhex("00078180000100010000000001610000010001c00c000500010000003c0003016200")
CORPUS: dict[str, list[bytes]] = {
    **DOCUMENTS,
    "head": [
        b"GET /api/v1/namespaces/a/pods/b?watch=1&limit=2 HTTP/1.1\r\nHost: a:1\r\nAccept: text/html;q=1",
        b"POST http://a/apis/apps/v1/deployments HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-continue",
        b"PUT /a%2Fb%00 HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nUpgrade: websocket",
    ],
    "response": [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhelloHTTP/1.1",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x00",
    ],
    "chunks": [b"5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /", b"0\r\n\r\n"],
    "selectors": [b"a=b,c!=d,e in (f,g),!h,i,j notin (k),l>1,m<2", b"metadata.name=a\\,b,spec.x!=\\\\"],
    "query": [b"labelSelector=a%3Db&fieldSelector=c%3Dd&limit=5&continue=x&resourceVersion=1&dryRun=All&force=true"],
    "cel": [
        b"self.a.all(x, x.b > 1 && has(x.c)) ? [1u, 2.5e3, b'\\x01'] : {'k': \"v\", r'a': -1}.size()",
        b"self.map(x, x).exists_one(y, y in [\"a\", '''b''']) || !(a.?b.orValue(1) == optional.none())",
    ],
    "templates": [
        b"a {{- range $i, $x := .l }}{{ if $i }}{{ continue }}{{ end }}{{ $x | printf `%05.2f` }}{{ else }}-{{ end }}",
        b"{{ define `x` }}{{ .a.b }}{{ end }}{{ with .m }}{{ template `x` . }}{{ end }}{{/* c */}}{{ index .l 0 }}",
        b"{{ $x := slice .s 1 3 }}{{ $x = print $x '\\n' 0x1F `raw` }}{{ block `y` $x }}{{ . }}{{ end -}} {{ .n.z }}",
        b'{{ printf "%[2]*[1]d %v %#v %+q %x %T %c %U %-8.3s| %e %%" .i 5 .l .m .s .b .f 97 233 `a` .f | html }}',
    ],
    "scalars": [b"1.5Ki", b"-12e-3", b"2026-01-02T03:04:05.123456Z", b"1h2m3.5s", b"+.5n"],
    "json_path": [b"{.a[?(@.b==1)].c}", b"{range .a[*]}{.b}{end}", b".e.f[-1:]", b"$..c", b"['a'][0]"],
    "spdy": [_spdy()],
    "websocket": [_masked(2, b"\x00input") + _masked(9, b"ping") + _masked(1, b"0aGk=") + _masked(8, b"\x03\xe8")],
    "dns": [_DNS_QUERY, _DNS_ANSWER],
}


@pytest.mark.parametrize("target", TARGETS)
def test_mutations_of_valid_input_are_parsed_or_rejected(target: str, request: pytest.FixtureRequest) -> None:
    mutator = Mutator(target)
    for seed in CORPUS[target]:
        TARGETS[target](seed)
        for _ in range(request.config.getoption("--fuzz") or 150):
            TARGETS[target](mutator.data(seed))


def test_the_first_byte_picks_the_parser() -> None:
    for byte in range(len(TARGETS)):
        check(bytes([byte]) + b"{}")
    check(b"")
