"""The completion script for zsh: a function with `_arguments` for each command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from ostinato.cli.completion.words import Command, Option, Value

_TAIL: Final = """\
if [[ $funcstack[1] == _ostinato ]]; then _ostinato "$@"; else compdef _ostinato ostinato; fi
"""


def script(commands: Sequence[Command]) -> str:
    parts = ["#compdef ostinato\n# Completion of `ostinato` for zsh: source <(ostinato completion zsh)\n"]
    parts += ["".join(_function(command)) for command in commands]
    return "\n".join([*parts, _TAIL])


def _function(command: Command) -> Iterator[str]:
    yield f"{_name(command.path)}() {{\n"
    specs = [_spec(option) for option in command.options]
    if command.below:
        specs += ["'1:command:->command'", "'*::argument:->argument'"]
    elif command.argument.kind != "none":
        specs.append(quote(f"{'*' if command.repeats else '1'}{_message(command.argument)}"))
    if not command.below:
        yield f"    _arguments -s {' '.join(specs)}\n}}\n"
        return
    yield "    local state line\n    typeset -A opt_args\n"
    yield f"    _arguments -s -C {' '.join(specs)}\n    case $state in\n    command)\n        local -a commands=(\n"
    yield from (f"            {quote(f'{name}:{text}')}\n" for name, text in command.below)
    yield "        )\n        _describe command commands ;;\n    argument)\n        case $line[1] in\n"
    yield from (f"        {name}) {_name(f'{command.path} {name}')} ;;\n" for name, _ in command.below)
    yield "        esac ;;\n    esac\n}\n"


def _name(path: str) -> str:
    return "_".join(["_ostinato", *path.split()])


def _spec(option: Option) -> str:
    excluded = "*" if option.repeatable else f"({' '.join(option.flags)})"
    text = re.sub(r"[\[\]:]", r"\\\g<0>", option.help)
    flags = option.flags[0] if len(option.flags) == 1 else f"{{{','.join(option.flags)}}}"
    if option.value.kind == "none":
        return f"{quote(excluded)}{flags}{quote(f'[{text}]')}"
    if len(option.flags) == 1:
        flags = f"{flags}="
    else:
        flags = f"{{{','.join(f'{each}=' if each.startswith('--') else each for each in option.flags)}}}"
    return f"{quote(excluded)}{flags}{quote(f'[{text}]{_message(option.value)}')}"


def _message(value: Value) -> str:
    """Return the message and the action of a value in a spec of `_arguments`."""
    name = value.name.replace(":", r"\:")
    if value.choices:
        return f":{name}:({' '.join(value.choices)})"
    return f":{name}:{'_files -/' if value.kind == 'directory' else '_files' if value.kind == 'file' else ' '}"
