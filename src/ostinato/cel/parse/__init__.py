"""Parse CEL source to a syntax tree or a list of syntax errors: lexer, parser, macros, grammar."""
