"""Any source of samples to examined samples and their embeddings: files, images, tables, groups, engines."""
