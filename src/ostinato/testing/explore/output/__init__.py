"""What an exploration shows: the report, the timeline as text and as SVG, a test to paste."""
