"""Pages in a browser: what people look at, and what they do there."""
