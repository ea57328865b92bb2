"""Pages in a browser: the dealer's console and the review of a record."""
