"""Stage 7: a run record to something a person reads."""
