"""The first page: runs, accuracy, the worst slices."""
