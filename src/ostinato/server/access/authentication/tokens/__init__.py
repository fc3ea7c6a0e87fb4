"""Bearer token authenticators: static, bootstrap and webhook tokens; JSON web tokens and their keys."""
