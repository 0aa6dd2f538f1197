"""For authors of scorers: options, ranges, and the contract test."""
