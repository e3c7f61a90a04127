"""The map of all samples: places, colours, selections."""
