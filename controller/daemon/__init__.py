"""The composition root: a table that is served, with everybody who speaks to it."""
