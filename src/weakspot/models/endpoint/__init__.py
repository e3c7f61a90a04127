"""Models behind an address: chat, classification, images, edits and masks."""
