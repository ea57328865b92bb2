"""The dealer's console: what it says, what it offers, how it looks."""
