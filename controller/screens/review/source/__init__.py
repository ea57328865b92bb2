"""Where a review's rounds come from, and its background work."""
