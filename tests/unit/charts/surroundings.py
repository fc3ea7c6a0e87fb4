"""What the recorded expressions are rendered with: values, files, named templates."""

from __future__ import annotations

VALUES = r"""
s: hello
empty: ""
n: 3
f: 2.5
big: 1000000
huge: 12345678901234567890
tiny: 0.0000001
neg: -7
yes: true
no: false
nil: null
list: [a, b, c]
nums: [1, 2, 3]
mixed: [1, a, true, null, 2.5]
nested: {a: {b: {c: deep}}, list: [{name: x}, {name: y, on: false}], none: null}
em: {}
el: []
multi: "line1\nline2\n"
trailing: "a  \nb\n\n"
indented: "  a\n b\n"
uni: "héllo wörld ☃"
special: "<a href=\"x\">&'\\"
dup: [a, b, a, 1, 1, "1"]
labels: {app.kubernetes.io/name: web, b: "2", a: "1"}
long: "The quick brown fox jumps over the lazy dog and then it runs away from the very angry bear that it has met"
quoted: ["yes", "no", "null", "~", "1", "1.5", "1e3", "0x10", "010", "2001-01-01", "true", "", " a", "a ", "a: b",
  "a #b", "- a", "*x", "&x", "!x", "%x", "@x", "`x", "'", "\"", "[", "{", "a,b", ":", "a:", "#", "-", "?", "|", ">",
  "=", "<<", "y", "on", ".inf", "12:30", "1_000", "+1", "-.5", "0o7", "\t", "\u00e9", "\u2028", "\u0001"]
"""
FILES = {
    "a.txt": "alpha\n",
    "conf/b.ini": "[x]\ny=1\n",
    "conf/c.bin": "\x00\x01",
    "conf/d/e.txt": "deep",
    "no-newline": "x\ny",
    "empty": "",
}
PARTIALS = """
{{- define "plain" }}plain:{{ .s }}{{ end -}}
{{- define "labels" }}
app: {{ .name | default "x" }}
{{- end -}}
{{- define "self" }}{{ if gt (int .n) 0 }}{{ .n }},{{ include "self" (dict "n" (sub .n 1)) }}{{ end }}{{ end -}}
{{- define "bad" }}{{ .x.y.z }}{{ end -}}
"""
