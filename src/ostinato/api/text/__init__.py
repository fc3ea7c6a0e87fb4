"""Text forms with a grammar of their own: cron schedules, JSONPath, regular expressions, Go's value formatting."""
