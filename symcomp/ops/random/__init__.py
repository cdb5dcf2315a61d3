"""Random numbers: the state of a stream, draws from it, and the distributions made of them."""
