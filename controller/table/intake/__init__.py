"""Device events become table events: the only place that knows both vocabularies."""
