"""The table loop: one queue, one consumer, the only writer of state."""
