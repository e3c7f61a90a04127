"""Opening locations and decoding pictures: shared by every stage that touches pixels."""
