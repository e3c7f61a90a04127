"""The default that needs no hub: encoder, segmenter and witnesses."""
