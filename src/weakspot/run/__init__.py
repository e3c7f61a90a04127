"""The loop: settings, wiring, models asked once, and the stages in order."""
