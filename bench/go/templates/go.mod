module ostinato.dev/bench/templates

go 1.26.0
