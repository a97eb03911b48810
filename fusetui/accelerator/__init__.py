"""The embedded accelerator model: what a kernel costs on a described device. Knows no telemetry and no screen."""
