"""NVIDIA's libraries: where they are, a handle of each for a device, and how plans call them."""
