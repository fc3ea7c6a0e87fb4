"""The objects of a package, for every format; `everything.all_objects` returns them in the order of installation."""
