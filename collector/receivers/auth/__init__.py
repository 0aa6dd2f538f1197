"""Who may send and who may read: tokens, tenants and certificates of the servers."""
