"""The review: a table's record looked at round by round. It changes nothing."""
