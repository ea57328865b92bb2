"""What a waiting step shows and the words for it; pure functions of the state."""
