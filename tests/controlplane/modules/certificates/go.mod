module rebalancer.test/controlplane/certificates

go 1.26.0
