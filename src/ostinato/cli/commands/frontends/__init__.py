"""Commands of the other forms of operators."""
