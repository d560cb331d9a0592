"""Live-migrates KubeVirt virtual machines so that a Pending one fits."""
