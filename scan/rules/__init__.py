"""The rewrites of loops: less in them, fewer of them, and larger products around them."""
