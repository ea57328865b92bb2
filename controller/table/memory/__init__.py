"""What a table knows beside the procedure's state; pure."""
