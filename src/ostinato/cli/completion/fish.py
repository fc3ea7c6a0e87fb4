"""The completion script for fish: one `complete` for each command and option."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ostinato.cli.completion.words import Command, Option, Value

_HEAD: Final = """\
# Completion of `ostinato` for fish: ostinato completion fish > ~/.config/fish/completions/ostinato.fish
function __ostinato_at
    # Whether the typed command is the given one: "", "run" or "snapshot save".
    set -l found
    for word in (commandline -opc)[2..-1]
        if contains -- (string join -- " " $found $word) $__ostinato_commands
            set -a found $word
        end
    end
    test (string join -- " " $found | string collect --allow-empty) = "$argv"
end
complete -c ostinato -f
"""


def script(commands: Sequence[Command]) -> str:
    paths = " ".join(_quoted(each.path) for each in commands if each.path)
    return "".join([f"set -g __ostinato_commands {paths}\n", _HEAD, *(line for each in commands for line in _of(each))])


def _of(command: Command) -> Iterator[str]:
    start = f"complete -c ostinato -n {_quoted(f'__ostinato_at {command.path}'.rstrip())}"
    for name, text in command.below:
        yield f"{start} -a {name} -d {_quoted(text)}\n"
    if command.argument.kind != "none":
        yield f"{start} {_value(command.argument)}\n"
    for option in command.options:
        yield f"{start} {_flags(option)} -d {_quoted(option.help)}{_requires(option.value)}\n"


def _flags(option: Option) -> str:
    return " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in option.flags)


def _requires(value: Value) -> str:
    return "" if value.kind == "none" else f" -r {_value(value)}"


def _value(value: Value) -> str:
    if value.choices:
        return f"-f -a {_quoted(' '.join(value.choices))}"
    return {"file": "-F", "directory": "-f -a '(__fish_complete_directories)'"}.get(value.kind, "-f")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
