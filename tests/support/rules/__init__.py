"""Options and hands for tests of the rules."""
