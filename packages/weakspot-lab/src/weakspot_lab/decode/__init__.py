"""What a failure direction looks like."""
