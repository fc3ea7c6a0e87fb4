module ostinato/scripts/go_templates

go 1.25
