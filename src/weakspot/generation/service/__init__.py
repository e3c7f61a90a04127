"""The generator service: requests in, judged and cached images out."""
