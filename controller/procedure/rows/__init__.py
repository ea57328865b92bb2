"""The rows of an undisturbed round, in the order of play."""
