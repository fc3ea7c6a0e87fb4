"""Write templates for `main.go`, which records what Go makes of them.

    cd scripts/go_templates
    python cases.py language | go run . > ../../tests/data/gotemplate/language.jsonl
    python cases.py random 20000 --seed 1 | go run . > /tmp/vectors.jsonl
    cd ../.. && python -m tests.unit.gotemplate.replay /tmp/vectors.jsonl

`language.txt` has the templates that are written by hand, one in a line.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections.abc import Iterator

DATA = {
    "v": {
        "s": "hello",
        "e": "",
        "u": "héllo wörld ✓",
        "h": '<a href="x">\'&=`\\</a>',
        "c": "a\tb\n\u0001\u200b\u2028\u00ad\U0001f600\x7f",
        "n": None,
        "i": {"$int": 42},
        "z": {"$int": 0},
        "neg": {"$int": -7},
        "i64": {"$int64": 9},
        "u8": {"$uint8": 200},
        "f": 3.14159,
        "f0": 0,
        "f1": 1,
        "big": 1000000,
        "huge": 1e21,
        "small": 1.5e-7,
        "fneg": -2.5,
        "t": True,
        "no": False,
        "l": [1, "a", None, True, 2.5],
        "le": [],
        "m": {"b": 1, "a": "x", "c": None, "d": {"e": [1]}},
        "me": {},
        "ss": {"$strings": ["x", "y z"]},
        "by": {"$bytes": "hi\n"},
        "ll": [[1, 2], [3], []],
        "lm": [{"n": "a", "v": 1}, {"n": "b"}, {}],
        "nest": {"a": {"b": {"c": "deep", "l": [0, {"k": "in"}]}}},
    },
    "list": [1, 2, {"$int": 3}],
    "text": "plain",
    "number": {"$int": 5},
    "zero": {"$int": 0},
    "true": True,
}

Case = dict[str, str]
_KEYS = list(DATA["v"])  # type: ignore[call-overload]
_VERBS = [*"vdsqxXtTfFeEgGboOcUwz%"]
_FLAGGED = """
%5v %-5v| %05v %+v %#v %.2v %5.1v %x %#x %X %#q %+q %10q| %-10q| %.2s %8.3s| %-8s| %05s %3c| %-3c| %08b %#o %#X %+d %05d
%-5d| %+05d %.5d %8.5d| %-8.5d| %.0d %#U %#.6U %10U| %.3f %8.2f| %-8.2f| %08.2f %+.1f %+08.2f %.0f %#.0f %#g %.3g %#.3g
%10.3e| %.3x %+g %e %G %6% %[1]v %[1]d %[2]v %[0]v %[1v %[x]v %[1]5d %[1]*d %-z %!d %5 % %+ %.d %.*f %10000010d
"""
_FORMATS = [*_FLAGGED.split(), "% v", "%# x", "% X", "% d", "% .1f", "% "]
_FUNCTIONS = "and or not eq ne lt le gt ge index slice len print printf println html js urlquery"


def case(text: str, data: str = "v", missing: str = "") -> Case:
    made = {"t": text}
    if data:
        made["d"] = data
    if missing:
        made["m"] = missing
    return made


def language() -> Iterator[Case]:
    """The cases that tests replay."""
    yield from values()
    yield from formats()
    yield from comparisons()
    yield from elements()
    for text in read("language.txt"):
        yield case(text)
    for text in read("language.txt"):
        if any(word in text for word in (".n", ".x", ".y", "nil", ".nest")):
            yield case(text, missing="zero")
            yield case(text, missing="error")
    for data, text in itertools.product(
        ("list", "text", "number", "zero", "true", ""),
        (
            "{{.}}",
            "{{.a}}",
            "{{$}}",
            "{{$.a.b}}",
            "{{len .}}",
            "{{range .}}<{{.}}>{{else}}none{{end}}",
            "{{range $i, $x := .}}<{{$i}}={{$x}}>{{else}}none{{end}}",
            "{{range $x := .}}<{{$x.y}}>{{end}}",
            "{{with .}}{{.}}{{else}}-{{end}}",
            '{{printf "%v %T" . .}}',
            "{{index . 1}}",
            "{{slice . 1}}",
            "{{not .}}",
            "{{and . 1}} {{or . 2}}",
            "{{eq . 5}}",
            "{{.|print}}",
        ),
    ):
        yield case(text, data)


def read(name: str) -> list[str]:
    """The lines of a file as templates; `\\n` in them is a newline."""
    with open(f"{sys.path[0]}/{name}", encoding="utf-8") as file:
        return [line.rstrip("\n").replace("⏎", "\n") for line in file if line.strip() and not line.startswith("## ")]


def values() -> Iterator[Case]:
    for key in [*_KEYS, "missing"]:
        for text in (
            "{{.%s}}",
            "{{len .%s}}",
            "{{not .%s}}",
            "{{print .%s .%s}}",
            "{{println .%s 1}}",
            "{{html .%s}}",
            "{{js .%s}}",
            "{{urlquery .%s}}",
            "{{if .%s}}yes{{else}}no{{end}}",
            "{{range $k, $x := .%s}}{{$k}}:{{$x}},{{else}}none{{end}}",
            "{{with $x := .%s}}{{$x}}|{{.}}{{else}}-{{end}}",
            "{{.%s.y}}",
            "{{printf .%s}}",
            "{{.%s 1}}",
            "{{.%s | .%s}}",
            "{{call .%s}}",
        ):
            yield case(text.replace("%s", key))


def formats() -> Iterator[Case]:
    shown = ["s", "u", "c", "n", "i", "neg", "u8", "f", "big", "fneg", "t", "l", "m", "ss", "by", "e", "z", "f0"]
    for verb, key in itertools.product(_VERBS, shown):
        yield case(f'{{{{printf "%{verb}" .{key}}}}}')
    for form, key in itertools.product(_FORMATS, ["s", "i", "neg", "f"]):
        yield case(f'{{{{printf "{form}" .{key}}}}}')
    for form, key in itertools.product(
        ["%x", "%+v", "%#v", "%q", "%5d", "%s", "% x", "%#x", "%T"], ["l", "m", "by", "u"]
    ):
        yield case(f'{{{{printf "{form}" .{key}}}}}')


def comparisons() -> Iterator[Case]:
    keys = ["s", "e", "n", "i", "neg", "i64", "u8", "f", "f1", "t", "no", "l", "m", "ss", "missing"]
    for first, second in itertools.product(keys, keys):
        yield case(f"{{{{eq .{first} .{second}}}}}")
        if first <= second:
            yield case(f"{{{{lt .{first} .{second}}}}} {{{{ge .{first} .{second}}}}}")


def elements() -> Iterator[Case]:
    indexes = ["0", "1", "2", "5", "-1", '"a"', '"zz"', "nil", "1.0", "true", ".n", ".missing", ".i64", ".u8"]
    for key, at in itertools.product(["s", "l", "m", "ss", "by", "n", "i", "missing", "u"], indexes):
        yield case(f"{{{{index .{key} {at}}}}}")
    for key, at in itertools.product(
        ["s", "l", "ss", "by", "m", "n", "u"], ["", "1", "2 3", "3 2", "0 99", "0 1 2", "0 2 1"]
    ):
        yield case(f"{{{{slice .{key} {at}}}}}")


class Grammar:
    """Random templates: mostly valid, some not."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._variables: list[str] = ["$"]
        self._loops = 0

    def template(self) -> str:
        self._variables = ["$"]
        self._loops = 0
        text = "".join(self._part(3) for _ in range(self._random.randint(1, 4)))
        if self._random.random() < 0.15:
            text += '{{define "x"}}<{{.}}' + ("{{.y}}" if self._random.random() < 0.3 else "") + ">{{end}}"
        if self._random.random() < 0.08:
            text = self._damaged(text)
        return text

    def _damaged(self, text: str) -> str:
        at = self._random.randrange(len(text) + 1)
        choice = self._random.choice(
            ["", "}", "{", "|", '"', "(", ")", " ", "é", "&", ".", ":=", "`", "'", "$", "\n", "-"]
        )
        return text[:at] + choice + text[at + self._random.randint(0, 2) :]

    def _pick(self, *options: str) -> str:
        return self._random.choice(options)

    def _part(self, depth: int) -> str:
        roll = self._random.random()
        left, right = self._pick("{{", "{{", "{{- ", "{{ "), self._pick("}}", "}}", " -}}", " }}")
        if roll < 0.2:
            return self._pick("text", " ", "\n", " a\n b ", "é", "{", "}", "{{/* c */}}", "{{- /* c */ -}}")
        if roll < 0.55 or depth == 0:
            return left + self._pipe(depth) + right
        if roll < 0.62:
            name = self._pick("$a", "$b", "$c")
            if name in self._variables and self._random.random() < 0.5:
                return f"{left}{name} = {self._pipe(depth)}{right}"
            pipe = self._pipe(depth)
            self._variables.append(name)
            return f"{left}{name} := {pipe}{right}"
        if roll < 0.68:
            return f'{left}template "{self._pick("x", "x", "y")}"{self._pick("", " .", " .m", " .n")}{right}'
        return self._branch(depth, left, right)

    def _branch(self, depth: int, left: str, right: str) -> str:
        keyword = self._pick("if", "with", "range", "range")
        visible = len(self._variables)
        pipe = self._pipe(depth - 1)
        if self._random.random() < 0.3:
            self._variables.append("$a")
            pipe = f"$a := {pipe}"
        elif keyword == "range" and self._random.random() < 0.4:
            self._variables += ["$a", "$b"]
            pipe = f"$a, $b := {pipe}"
        self._loops += keyword == "range"
        body = "".join(self._part(depth - 1) for _ in range(self._random.randint(0, 2)))
        if self._loops and self._random.random() < 0.2:
            body += self._pick("{{break}}", "{{continue}}", "{{if .}}{{continue}}{{end}}")
        self._loops -= keyword == "range"
        otherwise = ""
        if self._random.random() < 0.3:
            more = f" {keyword} {self._pipe(0)}" if keyword != "range" and self._random.random() < 0.3 else ""
            otherwise = f"{{{{else{more}}}}}" + self._part(depth - 1)
        del self._variables[visible:]
        return f"{left}{keyword} {pipe}{right}{body}{otherwise}{{{{end}}}}"

    def _pipe(self, depth: int) -> str:
        text = self._command(depth)
        while self._random.random() < 0.25:
            text += self._pick(" | ", "|") + self._call(depth)
        return text

    def _command(self, depth: int) -> str:
        return self._operand(depth) if self._random.random() < 0.5 else self._call(depth)

    def _call(self, depth: int) -> str:
        name = self._pick(
            *[
                "and",
                "or",
                "not",
                "eq",
                "ne",
                "lt",
                "le",
                "gt",
                "ge",
                "index",
                "slice",
                "len",
                "print",
                "printf",
                "println",
                "html",
                "js",
                "urlquery",
            ]
        )
        arguments = [self._operand(depth) for _ in range(self._random.choice([0, 1, 1, 2, 2, 3]))]
        if name == "printf" and self._random.random() < 0.8:
            arguments.insert(0, json.dumps("".join(self._verb() for _ in range(self._random.randint(1, 2)))))
        return " ".join([name, *arguments])

    def _verb(self) -> str:
        flags = "".join(flag for flag in "+-# 0" if self._random.random() < 0.15)
        width = self._pick("", "", "", "1", "7", "12", "*")
        precision = self._pick("", "", "", ".0", ".3", ".", ".*", ".9")
        index = self._pick("", "", "", "", "", "[1]", "[2]", "[3]")
        return (
            "%" + flags + width + precision + index + self._pick(*"vvddsqxXtTfFeEgGboOcU%z") + self._pick("", " ", "|")
        )

    def _operand(self, depth: int) -> str:
        roll = self._random.random()
        if roll < 0.4:
            return "." + ".".join([self._pick(*_KEYS), *self._pick("", "", "", "a", "y z", "b", "a b c").split()])
        if roll < 0.5:
            return self._pick(*self._variables) + self._pick("", "", ".a", ".m.b")
        if roll < 0.58:
            return "."
        if roll < 0.66 and depth > 0:
            return f"({self._pipe(depth - 1)})" + self._pick("", "", "", ".a", ".y.z")
        if roll < 0.7:
            return self._pick("true", "false", "nil", "print", "len", "html")
        if roll < 0.85:
            return self._pick(
                "0", "1", "2", "3", "-1", "1.5", "1e3", "0x1F", "0b101", "0o17", "017", "1_000", "'a'", "'\\n'", "1e-7",
                "9223372036854775808", "-0", "0x1p4", ".5", "5.", "1e400", "+3",
            )  # fmt: skip
        return self._pick(
            '"a"', '"hello"', '""', '"é✓"', '"a\\n\\t\\"b"', "`raw\\n`", '"\\x41\\u00e9"', '"<&>"', '"%d"'
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["language", "random"])
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.kind == "language":
        seen: dict[str, Case] = {}
        for made in language():
            seen.setdefault(json.dumps(made), made)
        cases = list(seen.values())
    else:
        grammar = Grammar(options.seed)
        cases = [case(grammar.template(), missing=grammar._pick("", "", "zero", "error")) for _ in range(options.count)]
    json.dump({"data": DATA, "cases": cases}, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
