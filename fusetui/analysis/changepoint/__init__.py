"""When a series changed: an online flag, an offline confirmation with its date, and what happened at that time."""
