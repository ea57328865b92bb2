"""File access of the record, replaceable by a failing disk in tests."""
