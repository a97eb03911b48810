"""Charts: plain functions that draw numpy data on a canvas. They know no widget and no snapshot."""
