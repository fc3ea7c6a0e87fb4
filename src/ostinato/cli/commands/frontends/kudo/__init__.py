"""Commands of `ostinato kudo`."""
