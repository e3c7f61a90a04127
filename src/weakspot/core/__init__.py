"""Records that flow through the loop, the roles that can be replaced, and pure helpers.

Nothing here imports another package of weakspot. A record module may import only records of earlier stages, so the order of the
loop is also the order of the types.
"""
