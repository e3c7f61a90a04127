"""The pages as files that need no server."""
