"""Live telemetry to the contract, one file per source."""
