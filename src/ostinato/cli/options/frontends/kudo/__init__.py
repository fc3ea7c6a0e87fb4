"""Options of `ostinato kudo`: the commands of `kubectl kudo`, and those that it lacks."""

from ostinato.cli.options.frontends.kudo.commands import add_to

__all__ = ["add_to"]
