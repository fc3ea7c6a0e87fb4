"""The simulated world: virtual time, a seed, one thread. `ostinato.world` exports what is public of it."""
