"""What the cluster still has room for: VMs to come, and VMs to start again after a loss."""
