"""The stand-in of the papers' photographs: rendered scenes whose truth is known, and small networks trained on their pixels."""
