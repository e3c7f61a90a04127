"""Side: which vectors lie nearest to one, exactly and without loading them all."""
