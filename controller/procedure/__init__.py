"""The dealing procedure, pure: states, events, effects, the table of rows, guards, step()."""
