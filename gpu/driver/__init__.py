"""The driver layer: memory, streams, events and launches of a device.

One interface (``interface.py``) and two implementations: ``cuda.py`` over PyCUDA, ``emulator.py``
over gcc. No other file knows either; ``devices.py`` finds the driver of a device by its name.
"""
