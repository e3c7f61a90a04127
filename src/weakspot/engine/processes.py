"""Heavy maps in other processes: a picture that kills its decoder, or a model that holds the interpreter, costs one worker."""
