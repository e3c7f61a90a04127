"""Search: captions found by generating, captioning what fails, and generating again; how far they raise failure rates."""
