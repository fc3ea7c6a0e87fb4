"""The live page in commands: `--page` of `ostinato up`, `run` and `demo`; `ostinato top`, `tree` and `why`."""
