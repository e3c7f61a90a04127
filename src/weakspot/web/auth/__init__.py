"""Everything that a request has to pass before a route sees it."""
