"""Long work in processes of its own, which can be watched, cancelled and continued."""
