"""The dealer's console: what to do now, the felt, and what answers it."""
