"""People of a house: badges, PINs, roles, sign-in, rate limit."""
