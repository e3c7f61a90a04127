"""Routes, one file a page; each calls `app.browsing` and says nothing of its own."""
