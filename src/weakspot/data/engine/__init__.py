"""Where heavy maps run: threads, processes, or a Ray cluster."""
