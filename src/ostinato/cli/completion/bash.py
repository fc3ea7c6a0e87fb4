"""The completion script for bash. It needs neither bash 4 nor the bash-completion package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from ostinato.cli.completion.words import Command, Value

_HEAD: Final = """\
# Completion of `ostinato` for bash: source <(ostinato completion bash)
_ostinato() {
    local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]}
    local command="" options="" words="" kind="" value="" i line
    if [[ $current == "=" ]]; then current=""  # bash splits --option=value at the =
    elif [[ $option == "=" ]]; then option=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$command ${COMP_WORDS[i]}" in
"""

_TAIL: Final = """\
    esac
    if [[ -z $value && $current == -* ]]; then words=$options kind=none; fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    case $kind in
        file) option=-f ;;
        directory) option=-d ;;
        *) return ;;
    esac
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen $option -- "$current")
}
complete -F _ostinato ostinato
"""


def script(commands: Sequence[Command]) -> str:
    return "".join(_lines(commands))


def _lines(commands: Sequence[Command]) -> Iterator[str]:
    yield _HEAD
    for command in commands:
        for name, _ in command.below:
            path = f"{command.path} {name}".strip()
            yield f"            {quote(f'{command.path} {name}')}) command={quote(path)} ;;\n"
    yield '        esac\n    done\n    case "$command" in\n'
    for command in commands:
        flags = [flag for option in command.options for flag in option.flags]
        argument = Value(
            command.argument.kind, choices=[*(name for name, _ in command.below), *command.argument.choices]
        )
        yield f"        {quote(command.path)})\n"
        yield f"            options={quote(' '.join(flags))} {_assignments(argument)}\n"
        yield '            case "$option" in\n'
        for option in command.options:
            if option.value.kind != "none":
                yield f"                {'|'.join(option.flags)}) value=1 {_assignments(option.value)} ;;\n"
        yield "            esac ;;\n"
    yield _TAIL


def _assignments(value: Value) -> str:
    return f"words={quote(' '.join(value.choices))} kind={value.kind}"
