"""Running it: processes that share numbers, their end, metrics and traces."""
