"""Go's text/template in Python, for charts and packages that are written in it.

```python
from ostinato.gotemplate import Templates

templates = Templates({"upper": str.upper}, missing_key="zero")
templates.parse("helpers", '{{ define "name" }}{{ .name | upper }}{{ end }}')
templates.parse("page", 'name: {{ template "name" . }}')
assert templates.render("page", {"name": "web"}) == "name: WEB"
```

- `Templates`: a set of templates. `parse(name, text)` adds, `lookup(name)` finds, `render(name, data)` executes,
  `copy()` makes a set to which others can be added.
- Data: None, bool, str, int, float, bytes, dict with str keys, list, and the types of `ostinato.gotemplate.values`
  (`Int64`, `Uint8`, `Strings`, `Map`, `List`, `Object`). Nothing else can be read, called or printed.
- Numbers: an int is Go's int, a float Go's float64. Values from YAML in Helm are floats: 1000000.0 prints as 1e+06.
- Functions: plain callables with positional parameters. Annotations `str`, `int`, `Int64`, `float`, `bool`, `bytes`,
  `dict`, `list`, `Strings` are checked with Go's messages; others take any value, and nil or a missing key is None.
  `*args` is variadic. A first parameter `state: State` gets the execution: `state.render(name, data)` for `include`,
  `state.render_text(name, text, data)` for `tpl`, `state.charge(n)` before something large is made, `state.context`.
  `Function(call, parameters, variadic)` declares types that annotations cannot express, such as "[]string"; `RAW`
  parameters get NO_VALUE for a missing key.
- Functions raise ValueError or TemplateError; the message becomes `... at <...>: error calling NAME: MESSAGE`.
- Errors are `ParseError`, `ExecutionError` and `LimitError`, all of them `TemplateError`, with Go's texts.
- Formatting: `sprintf`, `sprint`, `sprintln`, and `text(value)` as `{{ . }}` prints it.
"""

from ostinato.gotemplate.errors import ExecutionError, LimitError, ParseError, TemplateError
from ostinato.gotemplate.fmt import sprint, sprintf, sprintln, text
from ostinato.gotemplate.functions import ANY, LIST, MAP, RAW, Function, function
from ostinato.gotemplate.limits import Limits
from ostinato.gotemplate.templates import State, Template, Templates
from ostinato.gotemplate.values import (
    NO_VALUE,
    Int32,
    Int64,
    Ints,
    List,
    Map,
    Object,
    Strings,
    Uint8,
    Uint64,
    Value,
    go_type,
)

__all__ = [
    "ANY",
    "LIST",
    "MAP",
    "NO_VALUE",
    "RAW",
    "ExecutionError",
    "Function",
    "Int32",
    "Int64",
    "Ints",
    "LimitError",
    "Limits",
    "List",
    "Map",
    "Object",
    "ParseError",
    "State",
    "Strings",
    "Template",
    "TemplateError",
    "Templates",
    "Uint8",
    "Uint64",
    "Value",
    "function",
    "go_type",
    "sprint",
    "sprintf",
    "sprintln",
    "text",
]
