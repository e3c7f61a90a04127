"""Setting up a project in the browser: where its images are, what classifies them, and whether both fit together."""
