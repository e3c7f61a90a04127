"""Research commands, reached as `weakspot lab`."""
