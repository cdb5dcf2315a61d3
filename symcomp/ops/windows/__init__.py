"""Windows that move over images: convolution and pooling."""
