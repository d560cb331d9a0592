"""Room for large VMs, by few migrations: the fragment rate of VMR2L's clusters.

Source of the task: Ding et al., "Towards VM Rescheduling Optimization Through Deep Reinforcement
Learning", EuroSys 2025. Its data is not used; clusters of the same shape are generated.
"""
