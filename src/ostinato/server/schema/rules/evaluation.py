"""Evaluation of a schema's validation rules on an object.

- The rules form a tree that contains only schema nodes with rules at or below them.
- All rules of an object share a cost budget; validation ends with an error if it is exceeded.
- Ratcheting: on an update, an unchanged value may violate a rule, with a warning, unless the rule is a transition rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ostinato.api.validation.field_errors import OMIT, FieldError, Path
from ostinato.cel.check.declarations import Declaration, declared
from ostinato.cel.identifiers import escape
from ostinato.cel.values import NONE, CelError, CostExceededError, Optional
from ostinato.server.flow.loop_budget import LOOP_BUDGET, LoopBudgetExceeded, has_loop_budget
from ostinato.server.schema.rules.rule import PER_CALL, PER_OBJECT, Rule, rules_of
from ostinato.server.schema.validation.explain import CorrelatedValue

_LONGEST_MESSAGE = 5 * 1024
_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"


class Findings:
    """The errors found, and the remaining budget."""

    __slots__ = ("_reserved", "budget", "errors", "warnings")

    def __init__(self, budget: int = PER_OBJECT) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self.budget = budget  # negative: validation has ended
        self._reserved = (
            budget - LOOP_BUDGET if has_loop_budget() else -1
        )  # the budget that must remain on the event loop

    def limit(self) -> int:
        """The cost limit of the next evaluation."""
        return PER_CALL if self._reserved < 0 else min(PER_CALL, max(self.budget - self._reserved, 0))

    def check_limit(self) -> None:
        """Called after an evaluation exceeded its limit: LoopBudgetExceeded if the limit was that of the event loop."""
        if self._reserved >= 0:
            raise LoopBudgetExceeded


class _Correlation(NamedTuple):
    """The old value of a node, or else of its nearest ancestor that can be correlated."""

    place: CorrelatedValue | None = None
    above: CorrelatedValue | None = None

    @property
    def unchanged(self) -> bool:
        known = self.place or self.above
        return known is not None and known.unchanged

    def field(self, name: str) -> _Correlation:
        if self.place is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):
            return _Correlation()
        return _Correlation(self.place.field(name), self.place)

    def item(self, index: int) -> _Correlation:
        return self if self.place is None else _Correlation(self.place.item(index), self.place)


class RuleTree:
    """The rules at and below one schema node."""

    __slots__ = ("_all_of", "_convert", "_declaration", "_fields", "_items", "_rules", "_type", "_values")

    def __init__(self, schema: Mapping[str, Any], declaration: Declaration | None, rules: Mapping[str, Any]) -> None:
        """`rules`: the schema itself, or a branch of its `allOf` with rules for the same nodes."""
        self._declaration = declaration
        self._type: str = schema.get("type") or ""
        self._rules = rules_of({**schema, **_validations(rules)}, declaration) if declaration is not None else []
        self._convert = declaration.convert if declaration is not None else None
        items, own_items = rules.get("items"), schema.get("items")
        below = declaration.items if declaration is not None else None
        self._items = _tree(own_items, below, items)
        self._values = _tree(schema.get("additionalProperties"), below, rules.get("additionalProperties"))
        self._fields: dict[str, RuleTree] = {}
        for name, inner in (rules.get("properties") or {}).items():
            own = (schema.get("properties") or {}).get(name)
            tree = _tree(own, _field(declaration, name, own), inner) if own is not None else None
            if tree is not None:
                self._fields[name] = tree
        parts = [RuleTree(schema, declaration, part) for part in rules.get("allOf") or () if has_rules(part)]
        self._all_of = [part for part in parts if part.any]

    @property
    def any(self) -> bool:
        return bool(self._rules or self._items or self._values or self._fields or self._all_of)

    def check(self, findings: Findings, path: Path, value: Any, old: Any, past: _Correlation) -> None:
        if value is None:
            return
        if self._rules:
            self._check_rules(findings, path, value, old, past)
        for part in self._all_of:
            if findings.budget < 0:
                return
            part.check(findings, path, value, old, _Correlation(None, past.above))
        if findings.budget < 0:
            return
        if type(value) is dict:
            self._check_fields(findings, path, value, old if type(old) is dict else {}, past)
        elif type(value) is list and self._items is not None:
            self._check_items(findings, path, value, old if type(old) is list else [], past)

    def _check_fields(
        self, findings: Findings, path: Path, value: dict[str, Any], old: dict[str, Any], past: _Correlation
    ) -> None:
        for name, item in value.items():
            if self._values is not None:
                self._values.check(findings, path.key(name), item, old.get(name), past.field(name))
            tree = self._fields.get(name)
            if tree is not None:
                tree.check(findings, path.child(name), item, old.get(name), past.field(name))
            if findings.budget < 0:
                return

    def _check_items(
        self, findings: Findings, path: Path, value: list[Any], old: list[Any], past: _Correlation
    ) -> None:
        assert self._items is not None
        before: dict[Any, Any] = {}
        keyed = self._declaration if self._declaration is not None and self._declaration.list_type == "map" else None
        if keyed is not None:
            before = {keyed.key_of(item): item for item in reversed(old)}
        for i, item in enumerate(value):
            was = before.get(keyed.key_of(item)) if keyed is not None else None
            self._items.check(findings, path.index(i), item, was, past.item(i))
            if findings.budget < 0:
                return

    def _check_rules(self, findings: Findings, path: Path, value: Any, old: Any, past: _Correlation) -> None:
        if findings.budget <= 0:
            findings.errors.append(FieldError.invalid(path, self._type, _SPENT))
            findings.budget = -1
            return
        convert = self._convert
        try:
            current = value if convert is None else convert(value)
            earlier = old if convert is None or old is None else convert(old)
        except CelError as error:
            if type(value) is str:
                findings.errors.append(FieldError.invalid(path, self._type, str(error)))
            else:
                for rule in self._rules:
                    what = f"{error} evaluating rule: {rule.text}"
                    findings.errors.append(FieldError.invalid(path, self._type, what))
            return
        for rule in self._rules:
            if rule.uses_old and old is None and not rule.optional_old:
                continue
            before = earlier if not rule.optional_old else NONE if old is None else Optional(earlier)
            self._check_rule(findings, rule, path, (value, current, before), past)
            if findings.budget < 0:
                return

    def _check_rule(
        self, findings: Findings, rule: Rule, path: Path, values: tuple[Any, Any, Any], past: _Correlation
    ) -> None:
        if rule.expression is None:
            if rule.error:
                findings.errors.append(FieldError.invalid(path, self._type, f"rule compile error: {rule.error}"))
            return
        value, *variables = values
        failed = ""
        holds = False
        try:
            holds, cost = rule.expression.evaluate(variables, findings.limit())
        except CelError as error:
            cost = error.cost
            failed = (
                f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: "
                f"{rule.text}"
                if str(error).startswith("no such overload")
                else f"{error} evaluating rule: {rule.text}"
            )
        except CostExceededError as error:
            findings.check_limit()
            why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: "
            findings.errors.append(FieldError.invalid(path, self._type, why + rule.text))
            findings.budget = -1
            return
        if cost > findings.budget:
            findings.errors.append(FieldError.invalid(path, self._type, _SPENT))
            findings.budget = -1
            return
        findings.budget -= cost
        if failed:
            findings.errors.append(FieldError.invalid(path, self._type, failed))
        elif holds is not True:
            fault = self._broken(findings, rule, path, value, variables)
            if not rule.uses_old and past.unchanged:
                findings.warnings.append(str(fault))
            else:
                findings.errors.append(fault)

    def _broken(self, findings: Findings, rule: Rule, path: Path, value: Any, variables: list[Any]) -> FieldError:
        where = path.child(rule.path) if rule.path else path
        try:
            detail = _message(findings, rule, variables) or rule.default_message
        except CostExceededError as error:
            findings.budget = -1
            return FieldError.invalid(where, self._type, str(error.args[0]))
        shown = OMIT if self._type in ("object", "array") else value
        match rule.raw.get("reason"):
            case "FieldValueForbidden":
                return FieldError.forbidden(where, detail)
            case "FieldValueRequired":
                return FieldError.required(where, detail)
            case "FieldValueDuplicate":
                return FieldError.duplicate(where, shown)
        return FieldError.invalid(where, shown, detail)


def _message(findings: Findings, rule: Rule, variables: list[Any]) -> str:
    """The result of `messageExpression`; "" if it is not usable."""
    if rule.message is None:
        return ""
    try:
        text, cost = rule.message.evaluate(variables, findings.limit())
    except CelError as error:
        text, cost = "", error.cost
    except CostExceededError:
        findings.check_limit()
        why = "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
        raise CostExceededError(f'{why}"{rule.raw["messageExpression"]}"') from None
    if cost > findings.budget:
        raise CostExceededError(
            "messageExpression evaluation failed due to running out of cost budget, no further validation rules will "
            "be run"
        )
    findings.budget -= cost
    text = text.strip() if isinstance(text, str) else ""
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def rule_tree(schema: Mapping[str, Any], *, root: bool = True) -> RuleTree | None:
    """The rule tree of a schema; None without rules. `root`: it is the schema of a resource."""
    if not has_rules(schema):
        return None
    tree = RuleTree(schema, declared(schema, root=root, name="selfType"), schema)
    return tree if tree.any else None


def check_rules(
    tree: RuleTree, obj: Any, old: Any, before: CorrelatedValue | None = None, path: Path | None = None
) -> Findings:
    """Validate an object; `old` and `before` are the old object on an update."""
    findings = Findings()
    tree.check(findings, path or Path(), obj, old, _Correlation(before))
    return findings


def has_rules(schema: Any) -> bool:
    """Whether a schema has rules, at its root or below."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if not isinstance(here, Mapping):
            continue
        if here.get("x-kubernetes-validations"):
            return True
        waiting += (here.get("properties") or {}).values()
        waiting += here.get("allOf") or ()
        waiting += [here.get("items"), here.get("additionalProperties")]
    return False


def _validations(rules: Mapping[str, Any]) -> dict[str, Any]:
    return {"x-kubernetes-validations": rules.get("x-kubernetes-validations")}


def _tree(schema: Any, declaration: Declaration | None, rules: Any) -> RuleTree | None:
    if not isinstance(schema, Mapping) or not isinstance(rules, Mapping) or not has_rules(rules):
        return None
    tree = RuleTree(schema, declaration, rules)
    return tree if tree.any else None


def _field(declaration: Declaration | None, name: str, schema: Mapping[str, Any] | None) -> Declaration | None:
    """The CEL declaration of a field; created for fields whose name is not a CEL identifier."""
    key = escape(name)
    if key is not None:
        return declaration.fields.get(key) if declaration is not None else None
    return declared(schema, root=bool(schema.get("x-kubernetes-embedded-resource"))) if schema is not None else None
