"""Tables of predictions: rows with what an agent did, instead of traces."""
