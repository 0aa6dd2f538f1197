"""Evidence of results: which is kept, how it is encoded, and the table that holds it."""
