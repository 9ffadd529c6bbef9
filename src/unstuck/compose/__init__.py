"""The one composition root: the ports filled with the edges of this machine, and what faces and the library call."""
