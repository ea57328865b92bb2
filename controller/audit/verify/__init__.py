"""Full verification of a record."""
