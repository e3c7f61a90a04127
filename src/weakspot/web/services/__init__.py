"""What pages show and what people do on them, as functions of a project; no web library is known here."""
