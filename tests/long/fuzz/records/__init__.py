"""Records that are changed in one place and signed again: both verifiers must judge them alike."""
