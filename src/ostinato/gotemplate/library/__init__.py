"""Functions of templates: sprig's, Helm's and KUDO's."""

from ostinato.gotemplate.library.maps import helm_functions, kudo_functions, sprig_functions

__all__ = ["helm_functions", "kudo_functions", "sprig_functions"]
