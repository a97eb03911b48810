"""One module per command: parse is done, wire the layers and run. Imports are inside functions where they cost time."""
