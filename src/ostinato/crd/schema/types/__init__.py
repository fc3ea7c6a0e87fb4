"""Structural schemas of particular types: scalars, lists, maps, unions, built-in structs."""
