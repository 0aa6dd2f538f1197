"""What authors of scorers share: options, ranges, and the check of the contract."""
