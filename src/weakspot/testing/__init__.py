"""Side: worlds with known truth, exact fakes of every model role, and conformance checks; shipped for plug-in authors."""
