"""Face: a project for programs that talk, by the Model Context Protocol."""
