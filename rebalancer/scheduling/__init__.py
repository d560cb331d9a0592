"""Where a pod may go, as kube-scheduler decides it; errs to the safe side."""
