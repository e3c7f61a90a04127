"""What several people share while a server runs and after it: people, sessions, studies, phrases, jobs; in SQLite or PostgreSQL."""
