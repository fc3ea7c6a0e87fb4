"""Label and field selectors: parse, print, match."""
