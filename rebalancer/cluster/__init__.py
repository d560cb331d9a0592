"""Where snapshots come from and migrations go: the live API, files, a simulated cluster."""
