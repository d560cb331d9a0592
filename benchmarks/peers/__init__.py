"""The planner beside other programs that move VMs, each in a process of its own."""
