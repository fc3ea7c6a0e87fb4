"""Object operations: a list of writes that the code of a front end returns instead of calling the API itself."""
