"""Studies with several people: their table, repairs by phrases, the tutorial."""
