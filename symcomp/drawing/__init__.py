"""Drawings of directed graphs: a layered layout, and a page that needs no network."""
