"""Whether a model may be released: a policy, its rules, and what a build server reads."""
