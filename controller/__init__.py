"""The table's controller: rules, procedure, record, screens and the `holecard` command."""
