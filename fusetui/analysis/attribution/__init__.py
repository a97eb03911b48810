"""Where the time of the slowest work went, and what caused it: two columns, for they differ."""
