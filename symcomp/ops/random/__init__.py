"""Random numbers: the state of a stream, draws from it, and distributions built from them."""
