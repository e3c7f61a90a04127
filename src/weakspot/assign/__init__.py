"""Side of stage 3: attributes for every sample, from words, from images and from the user's own columns."""
