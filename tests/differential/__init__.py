"""What the product says of pods and nodes, against what the real kube-scheduler says of them."""
