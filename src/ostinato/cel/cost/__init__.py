"""CEL cost: static estimates from schema sizes, and the cost counted at run time."""
