"""Options of the commands that run other forms of operators."""
