"""One supervisor per device: find, open, handshake, resume, acknowledge, retry."""
