"""Single samples: what is known of one, its image, and images that are not in the data."""
