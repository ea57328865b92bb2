"""Opening the record and restoring the table after a start."""
