"""Derivatives: the reverse walk (`grad`, `Lop`), the forward walk (`Rop`), and what uses them."""
