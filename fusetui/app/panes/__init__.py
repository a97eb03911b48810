"""The panes, one per file. Each draws from the snapshot and asks nobody where the data came from."""
