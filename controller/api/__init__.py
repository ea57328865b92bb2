"""The control API: what screens, robots and tests are told of a table, and how they act at it."""
