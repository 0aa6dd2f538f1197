"""The store in one SQLite file: the file, its writer and readers, its damage and its space."""
