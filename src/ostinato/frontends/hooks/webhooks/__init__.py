"""Webhooks of hooks: admission and conversion, served, registered and answered by runs of hooks."""
