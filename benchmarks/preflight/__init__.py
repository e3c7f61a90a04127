"""How often the pre-flight is wrong about healthy classifiers, and how often it notices what was planted."""
