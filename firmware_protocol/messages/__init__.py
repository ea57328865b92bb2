"""Generated messages with the codec they share."""
