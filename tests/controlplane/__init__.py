"""A real Kubernetes and KubeVirt control plane, as plain processes, for tests and by hand.

etcd, kube-apiserver, kube-scheduler, kube-controller-manager and virt-controller are the real
programs. Two things are played: the kubelets by KWOK, and virt-handler by `node_agent`. No
container runs, so a whole cluster with 16 GiB guests fits into a few hundred megabytes.

By hand: `python -m tests.controlplane`. In tests: the fixtures of `tests.controlplane.fixtures`.
"""
