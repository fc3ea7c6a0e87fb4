from ostinato.cli import main

main()
