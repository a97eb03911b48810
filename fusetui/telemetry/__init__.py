"""The telemetry contract: schema, header, reading, writing, recording, replay clock. Knows no other layer."""
