"""Labels that people give: which samples are worth it, tables of them, and joining them to samples."""
