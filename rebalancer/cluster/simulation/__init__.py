"""A cluster in memory: objects, virtual time, and the controllers that act on them."""
