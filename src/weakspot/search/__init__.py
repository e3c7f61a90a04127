"""Open-ended search for failures with a generator and a captioner."""
