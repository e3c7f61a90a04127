"""What people say of single samples: a wrong label, no use, a note, a tag; nothing of it counts before it is applied."""
