"""`python -m bench.operators`."""

from bench.operators.run import main

main()
