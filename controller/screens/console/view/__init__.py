"""The dealer's screen as values, without HTTP."""
