"""What secrets look like, and what is left of a text without them."""
