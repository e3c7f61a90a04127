"""Opening locations and decoding images: shared by every stage that touches pixels."""
