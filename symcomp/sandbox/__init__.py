"""``symcomp.sandbox``: where Theano has its faster random numbers."""
