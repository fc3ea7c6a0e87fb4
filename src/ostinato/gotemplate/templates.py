"""Sets of templates that call each other, and their execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from ostinato.gotemplate.builtins import BUILTINS
from ostinato.gotemplate.compile import compiled
from ostinato.gotemplate.errors import LimitError, ParseError, TemplateError
from ostinato.gotemplate.functions import Function, function
from ostinato.gotemplate.limits import Budget, Limits
from ostinato.gotemplate.parse import parse
from ostinato.gotemplate.strings import normalized, quote
from ostinato.gotemplate.tree import Node, Tree, is_empty
from ostinato.gotemplate.values import NO_VALUE, Value

MissingKey = Literal["default", "invalid", "zero", "error"]
_DEFAULT_LIMITS: Final = Limits()
_KEPT: Final = 4_000_000  # characters of texts whose templates a set and its copies keep


class State:
    """One execution, for functions that need it: those whose first parameter has the annotation `State`.

    - `templates`: the set that is executed. `context`: what the caller of `Templates.render` passed.
    - `render` and `render_text` execute templates within the limits of this execution.
    """

    __slots__ = ("budget", "context", "last", "templates")

    def __init__(self, templates: Templates, budget: Budget, context: Any) -> None:
        self.templates = templates
        self.budget = budget
        self.context = context
        self.last: Node | None = None  # the last node that was evaluated, where only the execution knows it

    def charge(self, amount: int) -> None:
        """Count characters or elements that a function is about to make; LimitError if they are too many."""
        self.budget.charge(amount)

    def render(self, name: str, data: Value) -> str:
        """The output of another template of the set."""
        return self._render(self.templates, name, data)

    def render_text(self, name: str, text: str, data: Value) -> str:
        """The output of a text as a template, which sees those of the set; what it defines is forgotten after."""
        templates = self.templates.copy()
        templates._templates.pop(name, None)  # an empty text would not replace it
        templates.parse(name, text)
        return self._render(templates, name, data)

    def _render(self, templates: Templates, name: str, data: Value) -> str:
        template = templates.lookup(name)
        if template is None:
            raise TemplateError(f"template: no template {quote(name)} associated with template {quote(templates.name)}")
        parts: list[str] = []
        template.execute(parts.append, State(templates, self.budget, self.context), NO_VALUE if data is None else data)
        self.budget.charge(sum(map(len, parts)))
        return normalized("".join(parts))


class Template:
    """A parsed template of a set."""

    __slots__ = ("_functions", "_missing_key", "_run", "_size", "_weight", "is_empty", "name", "tree")

    def __init__(self, tree: Tree, functions: Mapping[str, Function], missing_key: str) -> None:
        self.name = tree.name
        self.tree = tree
        self.is_empty = is_empty(tree.root)
        self._functions = functions
        self._missing_key = missing_key
        self._run: Callable[[list[Any], Value], Value] | None = None
        self._size = 0
        self._weight = 0

    def execute(self, append: Callable[[str], object], state: State, data: Value) -> None:
        """Append the output of the template for the data."""
        run = self._run
        if run is None:
            run, self._size, self._weight = compiled(self.tree, self._functions, self._missing_key)
            self._run = run
        budget = state.budget
        budget.steps -= self._weight
        if budget.steps < 0:
            raise budget.out_of_steps()
        if budget.depth >= budget.max_depth:
            raise budget.too_deep()
        frame: list[Any] = [NO_VALUE] * self._size
        frame[0], frame[1], frame[2] = append, state, data
        budget.depth += 1
        try:
            run(frame, data)
        finally:
            budget.depth -= 1


class _Parsed:
    """Templates by name and text: charts are rendered again and again. All are forgotten when they are too many."""

    def __init__(self) -> None:
        self._templates: dict[tuple[str, str], list[Template]] = {}
        self._size = 0

    def find(self, name: str, text: str) -> list[Template] | None:
        return self._templates.get((name, text))

    def add(self, name: str, text: str, templates: list[Template]) -> None:
        if self._size + len(text) > _KEPT:
            self._templates.clear()
            self._size = 0
        self._templates[name, text] = templates
        self._size += len(text)


class Templates:
    """Templates that know each other by name.

    - `functions`: callables by name, beside the built-in ones; see `function` for how arguments are checked.
    - `missing_key`: what a key gives that a map does not have: "default" prints `<no value>`, "zero" gives nil, "error"
      stops the execution.
    - `limits`: how much one rendering may do.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Value]] | None = None,
        *,
        missing_key: MissingKey = "default",
        limits: Limits = _DEFAULT_LIMITS,
        name: str = "",
    ) -> None:
        self.name = name
        self._functions = dict(BUILTINS)
        for known, call in (functions or {}).items():
            self._functions[known] = function(call)
        self._missing_key = "default" if missing_key == "invalid" else missing_key
        self._limits = limits
        self._templates: dict[str, Template] = {}
        self._parsed = _Parsed()  # copies share it

    @property
    def names(self) -> list[str]:
        """The names of all templates, sorted."""
        return sorted(self._templates)

    def parse(self, name: str, text: str) -> Template:
        """Add the template of a text, and those that it defines, which replace others of the same name."""
        made = self._parsed.find(name, text)
        if made is None:
            try:
                trees = parse(name, text, self._functions)
            except RecursionError:
                raise ParseError(f"template: {name}: blocks are nested too deeply") from None
            made = [Template(tree, self._functions, self._missing_key) for tree in trees.values()]
            self._parsed.add(name, text, made)
        for template in made:
            if template.name not in self._templates or not template.is_empty:
                self._templates[template.name] = template
        return self._templates[name]

    def lookup(self, name: str) -> Template | None:
        """The template of a name."""
        return self._templates.get(name)

    def copy(self) -> Templates:
        """A set with the same templates, to which others can be added."""
        other = Templates.__new__(Templates)
        other.__dict__.update(self.__dict__)
        other._templates = dict(self._templates)
        return other

    def render(self, name: str, data: Value, *, context: Any = None) -> str:
        """The output of a template for the data; TemplateError if it fails or exceeds the limits."""
        try:
            return State(self, Budget(self._limits), context).render(name, data)
        except RecursionError:
            raise LimitError(f"template: {name}: templates or values are nested too deeply") from None
