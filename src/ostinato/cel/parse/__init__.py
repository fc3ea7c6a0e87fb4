"""Parse CEL: lexer, grammar, macros; a text becomes a syntax tree or a list of syntax errors."""
