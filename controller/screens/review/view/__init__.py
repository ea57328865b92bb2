"""A record's rounds as values, without HTTP."""
