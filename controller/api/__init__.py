"""The control API: views of a table and acts at it, for screens, robots and tests."""
