module ostinato.dev/bench/load

go 1.22
