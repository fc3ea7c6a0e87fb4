"""Snapshots: named live views of a selection of objects, each reduced by a filter."""
