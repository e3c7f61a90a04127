"""Files of other tools, written and read, and a project as tools for agents."""
