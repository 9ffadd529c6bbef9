"""Plan formats: reading them, editing them and reviewing them."""
