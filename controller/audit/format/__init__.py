"""What lies in a record and how it is encoded; pure, FORMAT.md is its page."""
