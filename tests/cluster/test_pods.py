"""Pods are read as the scheduler sees them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from rebalancer.cluster.decode import ObjectDecoder
from rebalancer.cluster.kinds import POD
from rebalancer.errors import UnreadableObjectError
from rebalancer.model.objects import (
    HostPort,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from tests.cluster.wire_builders import CREATED, Json, container, launcher, pod, sidecar


def read(pod_json: Json) -> Pod:
    decoded = ObjectDecoder().decode(POD, msgspec.json.encode(pod_json), "here")
    assert isinstance(decoded, Pod)
    return decoded


def requests(*containers: Json, **spec: Any) -> dict[str, int]:
    return dict(read(pod("p", *containers, **spec)).requests)


class TestRequests:
    def test_containers_add_up(self) -> None:
        """siutsin/otaru#2804: three containers of 2Gi together, not the largest of them."""
        asked = requests(
            container("a", memory="1024Mi"),
            container("b", memory="768Mi"),
            container("c", memory="256Mi", cpu="1"),
        )
        assert asked == {"memory": 2 * 2**30, "cpu": 1000, "pods": 1}

    def test_larger_init_container_counts_instead(self) -> None:
        asked = requests(
            container(memory="1Gi", cpu="1"), initContainers=[container("i", memory="3Gi")]
        )
        assert asked == {"memory": 3 * 2**30, "cpu": 1000, "pods": 1}

    def test_sidecar_counts_beside_containers_and_later_init_containers(self) -> None:
        """The second init container runs while the sidecar before it runs: 1 + 4 > 1 + 2."""
        asked = requests(
            container(memory="2Gi"),
            initContainers=[
                container("first", memory="4500Mi"),
                sidecar(memory="1Gi"),
                container("second", memory="4Gi"),
            ],
        )
        assert asked["memory"] == 5 * 2**30

    def test_sidecar_adds_to_containers(self) -> None:
        asked = requests(container(memory="2Gi"), initContainers=[sidecar(memory="1Gi")])
        assert asked["memory"] == 3 * 2**30

    def test_overhead_comes_on_top(self) -> None:
        asked = requests(container(memory="1Gi"), overhead={"memory": "120Mi", "cpu": "250m"})
        assert asked == {"memory": 1144 * 2**20, "cpu": 250, "pods": 1}

    def test_pod_level_requests_replace_those_they_name(self) -> None:
        asked = requests(
            container(memory="1Gi", cpu="1"),
            resources={"requests": {"memory": "4Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": 1}},
            overhead={"memory": "1Gi"},
        )
        assert asked == {"memory": 5 * 2**30, "cpu": 1000, "hugepages-2Mi": 2**22, "pods": 1}

    def test_pod_level_limit_is_the_request_only_where_no_container_asks(self) -> None:
        asked = requests(
            container(memory="1Gi"), resources={"limits": {"memory": "4Gi", "cpu": "2"}}
        )
        assert asked == {"memory": 2**30, "cpu": 2000, "pods": 1}

    def test_limit_without_request_is_the_request(self) -> None:
        asked = requests(container(cpu="1", limits={"cpu": "2", "nvidia.com/gpu": "1"}))
        assert asked == {"cpu": 1000, "nvidia.com/gpu": 1, "pods": 1}

    def test_container_that_shrinks_in_place_counts_with_what_it_still_has(self) -> None:
        shrinking = {
            "name": "main",
            "resources": {"requests": {"memory": "3Gi"}},
            "allocatedResources": {"memory": "2Gi"},
        }
        made = pod("p", container(memory="1Gi"), status={"containerStatuses": [shrinking]})
        assert read(made).requests["memory"] == 3 * 2**30

    def test_resize_that_is_infeasible_does_not_count(self) -> None:
        as_before = {
            "name": "main",
            "resources": {"requests": {"memory": "1Gi"}},
            "allocatedResources": {"memory": "1Gi"},
        }
        status = {
            "containerStatuses": [as_before],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        }
        made = pod("p", container(memory="900Gi"), status=status)
        assert read(made).requests["memory"] == 2**30

    def test_launcher_of_a_2gib_guest_asks_for_more_than_2gib(self) -> None:
        """kubevirt/kubevirt#5730."""
        assert requests(container("compute", memory="2401517569"))["memory"] == 2401517569

    def test_numbers_without_quotes_are_quantities_too(self) -> None:
        asked = requests(container(cpu=0.5, memory=1073741824, ephemeral_storage=5e7))
        assert asked == {
            "cpu": 500,
            "memory": 2**30,
            "ephemeral-storage": 50_000_000,
            "pods": 1,
        }

    def test_equal_requests_are_one_object_however_they_are_written(self) -> None:
        decoder = ObjectDecoder()
        first, second, third = (
            decoder.decode(POD, msgspec.json.encode(pod(name, container(memory=memory))), "")
            for name, memory in (("a", "1Gi"), ("b", "1024Mi"), ("c", "1Gi"))
        )
        assert isinstance(first, Pod)
        assert isinstance(second, Pod)
        assert isinstance(third, Pod)
        assert first.requests is second.requests is third.requests

    def test_pod_without_containers_is_refused_rather_than_counted_as_nothing(self) -> None:
        made = pod("p")
        made["spec"] = {"nodeName": "n1"}
        with pytest.raises(
            UnreadableObjectError, match=r"Pod shop/p: spec\.containers: is missing"
        ):
            read(made)

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            (
                {"initContainers": [container(), container(memory="12Qi")]},
                "spec.initContainers[1].resources.requests.memory",
            ),
            (
                {"initContainers": [container(limits={"memory": "12Qi"})]},
                "spec.initContainers[0].resources.limits.memory",
            ),
            ({"overhead": {"memory": "12Qi"}}, "spec.overhead.memory"),
            ({"resources": {"requests": {"cpu": "12Qi"}}}, "spec.resources.requests.cpu"),
        ],
    )
    def test_unreadable_quantity_names_the_object_and_field(self, spec: Json, field: str) -> None:
        with pytest.raises(UnreadableObjectError) as error:
            requests(**spec)
        assert (error.value.kind, error.value.name) == ("Pod", "shop/p")
        assert error.value.field == field
        assert error.value.problem.startswith("'12Qi' is not a quantity")


class TestAffinity:
    def affinity(self, **kinds: Json) -> Pod:
        return read(pod("p", labels={"app": "db", "rev": "7"}, affinity=kinds))

    def required(self, *terms: Json) -> Json:
        return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}

    def test_required_node_affinity_is_read_and_preferred_is_not(self) -> None:
        term = {
            "matchExpressions": [{"key": "cpus", "operator": "Gt", "values": ["8"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        }
        found = self.affinity(
            nodeAffinity={
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
            }
        )
        assert found.node_affinity == (
            NodeSelectorTerm(
                (Requirement("cpus", "Gt", ("8",)),),
                (Requirement("metadata.name", "In", ("n1",)),),
            ),
        )

    def test_no_terms_are_something_else_than_no_requirement(self) -> None:
        empty: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
        assert self.affinity(nodeAffinity=empty).node_affinity == ()
        assert self.affinity(nodeAffinity={}).node_affinity is None

    def test_term_without_namespaces_means_the_pods_own(self) -> None:
        found = self.affinity(
            podAntiAffinity=self.required(
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
            )
        )
        assert found.pod_anti_affinity == (
            PodAffinityTerm(
                "zone", LabelSelector((Requirement("app", "In", ("db",)),)), ("shop",), None
            ),
        )

    def test_empty_namespace_selector_means_all_namespaces(self) -> None:
        found = self.affinity(
            podAffinity=self.required(
                {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
            )
        )
        assert found.pod_affinity == (
            PodAffinityTerm("zone", LabelSelector(), (), LabelSelector()),
        )

    def test_missing_label_selector_stays_missing(self) -> None:
        """It matches no pod, where an empty one matches all."""
        found = self.affinity(podAffinity=self.required({"topologyKey": "zone"}))
        assert found.pod_affinity[0].selector is None

    def test_label_keys_are_merged_with_the_pods_labels_once(self) -> None:
        merged = {"key": "rev", "operator": "In", "values": ["7"]}
        found = self.affinity(
            podAntiAffinity=self.required(
                {
                    "topologyKey": "zone",
                    "labelSelector": {"matchExpressions": [merged]},
                    "matchLabelKeys": ["rev", "absent"],
                    "mismatchLabelKeys": ["app"],
                }
            )
        )
        assert found.pod_anti_affinity[0].selector == LabelSelector(
            (Requirement("rev", "In", ("7",)), Requirement("app", "NotIn", ("db",)))
        )

    def test_unknown_operator_names_the_field(self) -> None:
        term = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
        with pytest.raises(UnreadableObjectError) as error:
            self.affinity(
                nodeAffinity={
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
                }
            )
        assert error.value.field == (
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms[0].matchExpressions[0].operator"
        )
        assert '"Near"' in error.value.problem

    def test_tolerations_default_to_equal(self) -> None:
        made = read(pod("p", tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b"}]))
        assert made.tolerations == (Toleration(operator="Exists"), Toleration("a", "Equal", "b"))


class TestHostPorts:
    def test_ports_of_containers_and_sidecars_count(self) -> None:
        ports = [{"containerPort": 80}, {"containerPort": 443, "hostPort": 8443}]
        side = [{"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
        made = read(
            pod(
                "p",
                {**container(), "ports": ports},
                initContainers=[{**sidecar(), "ports": side}],
            )
        )
        assert made.host_ports == (HostPort(53, "UDP", "10.0.0.1"), HostPort(8443))

    def test_ports_of_init_containers_do_not(self) -> None:
        ports = [{"containerPort": 443, "hostPort": 8443}]
        init = [{**container("init"), "ports": ports}]
        assert read(pod("p", initContainers=init)).host_ports == ()


class TestTopologySpread:
    def test_only_constraints_that_bar_nodes_are_kept(self) -> None:
        hard = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2}
        soft = {"topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1}
        made = read(pod("p", topologySpreadConstraints=[hard, soft]))
        assert made.topology_spread == (TopologySpreadConstraint("zone", 2, None),)

    def test_everything_that_can_be_set_is_kept(self) -> None:
        constraint = {
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "maxSkew": 1,
            "minDomains": 3,
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["hash", "not-there"],
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        }
        made = read(pod("p", labels={"hash": "1"}, topologySpreadConstraints=[constraint]))
        assert made.topology_spread == (
            TopologySpreadConstraint(
                topology_key="zone",
                max_skew=1,
                selector=LabelSelector(
                    (Requirement("app", "In", ("web",)), Requirement("hash", "In", ("1",)))
                ),
                min_domains=3,
                honors_node_affinity=False,
                honors_node_taints=True,
            ),
        )


class TestUnmodelled:
    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            (
                {"hostNetwork": True, "hostUsers": False},
                "a user namespace on the host's network",
            ),
            (
                {
                    "initContainers": [
                        {
                            **container(),
                            "restartPolicyRules": [{"action": "RestartAllContainers"}],
                        }
                    ]
                },
                "a restart rule for all its containers",
            ),
            ({"resourceClaims": [{"name": "gpu"}]}, "resource claims"),
            ({"schedulingGroup": {"podGroupName": "g"}}, "a scheduling group"),
            ({"volumes": [{"name": "v", "ephemeral": {}}]}, "generic ephemeral volume v"),
            ({"volumes": [{"name": "v", "csi": {"driver": "d"}}]}, "inline CSI volume v"),
            (
                {"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "1"}}]},
                "volume v, which is of a kind that is not known here",
            ),
        ],
    )
    def test_what_no_filter_decides_is_listed(self, spec: Json, words: str) -> None:
        assert read(pod("p", **spec)).unmodelled == (words,)

    def test_pods_on_the_hosts_network_are_fine(self) -> None:
        assert read(pod("p", hostNetwork=True, hostUsers=True)).unmodelled == ()

    def test_everyday_volumes_are_fine(self) -> None:
        everyday = ("emptyDir", "configMap", "secret", "projected", "downwardAPI", "hostPath")
        volumes = [{"name": kind, kind: {}} for kind in (*everyday, "image")]
        volumes.append({"name": "disk", "persistentVolumeClaim": {"claimName": "disk-0"}})
        made = read(pod("p", volumes=volumes))
        assert made.unmodelled == ()
        assert made.claim_names == ("disk-0",)


class TestLauncherPods:
    def test_owner_tells_the_vmi(self) -> None:
        made = launcher("web")
        made["metadata"]["labels"]["kubevirt.io/created-by"] = "another-uid"
        assert read(made).vmi_uid == "web-uid"

    def test_label_tells_the_vmi_where_the_owner_is_missing(self) -> None:
        made = launcher("web")
        made["metadata"]["ownerReferences"] = None
        assert read(made).vmi_uid == "web-uid"

    def test_pod_that_is_no_launcher_belongs_to_no_vmi(self) -> None:
        made = launcher("web")
        made["metadata"]["labels"]["kubevirt.io"] = "hotplug-disk"
        assert read(made).vmi_uid is None

    def test_target_pod_names_its_migration(self) -> None:
        made = launcher("web")
        made["metadata"]["labels"]["kubevirt.io/migrationJobUID"] = "m-uid"
        assert read(made).migration_uid == "m-uid"

    def test_only_annotations_that_concern_moving_are_kept(self) -> None:
        made = launcher("web")
        made["metadata"]["annotations"] = {
            "descheduler.alpha.kubernetes.io/request-evict-only": "",
            "rebalancer/opt-out": "true",
            "k8s.v1.cni.cncf.io/network-status": '[{"name": "net"}]',
        }
        assert read(made).annotations == {
            "descheduler.alpha.kubernetes.io/request-evict-only": "",
            "rebalancer/opt-out": "true",
        }


class TestScheduling:
    def refused(self, reason: str, **condition: Any) -> Json:
        refusal = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": "0/3 nodes are available: 3 Insufficient memory.",
            **condition,
        }
        return pod("p", status={"phase": "Pending", "conditions": [refusal]})

    def test_unschedulable_pod_says_since_when_and_why(self) -> None:
        found = read(self.refused("Unschedulable", lastTransitionTime="2026-11-02T09:30:00+01:00"))
        assert found.unschedulable_since == datetime(2026, 11, 2, 8, 30, tzinfo=UTC)
        assert found.unschedulable_message == "0/3 nodes are available: 3 Insufficient memory."
        assert not found.is_gated

    def test_time_of_creation_stands_in_for_a_null_transition_time(self) -> None:
        found = read(self.refused("Unschedulable", lastTransitionTime=None))
        assert found.unschedulable_since == datetime.fromisoformat(CREATED)

    def test_unschedulable_pod_without_any_time_is_so_since_ever(self) -> None:
        made = self.refused("Unschedulable", lastTransitionTime=None)
        made["metadata"]["creationTimestamp"] = None
        assert read(made).unschedulable_since == datetime(1970, 1, 1, tzinfo=UTC)

    def test_gated_pod_is_not_unschedulable(self) -> None:
        """openshift/openshift-docs#83412: quota controllers hold pods back."""
        found = read(self.refused("SchedulingGated"))
        assert found.is_gated
        assert found.unschedulable_since is None

    def test_gates_in_the_spec_are_enough_to_be_gated(self) -> None:
        assert read(pod("p", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])).is_gated

    def test_scheduler_error_is_not_unschedulable(self) -> None:
        assert read(self.refused("SchedulerError")).unschedulable_since is None

    def test_scheduling_fields_are_read(self) -> None:
        made = pod(
            "p",
            status={"nominatedNodeName": "n2"},
            nodeName="n1",
            nodeSelector={"disktype": "ssd"},
            priority=-5,
            priorityClassName="low",
            preemptionPolicy="Never",
            schedulerName="volcano",
        )
        made["metadata"]["deletionTimestamp"] = CREATED
        found = read(made)
        assert (found.node_name, found.nominated_node_name) == ("n1", "n2")
        assert found.node_selector == {"disktype": "ssd"}
        assert (found.priority, found.priority_class_name) == (-5, "low")
        assert not found.can_preempt
        assert found.scheduler_name == "volcano"
        assert found.is_terminating

    def test_pod_with_nothing_but_nulls_and_a_phase_is_a_pod(self) -> None:
        made: Json = {
            "metadata": {"name": "p", "namespace": "shop", "uid": "u", "labels": None},
            "spec": {
                "nodeName": None,
                "nodeSelector": None,
                "affinity": None,
                "tolerations": None,
                "volumes": None,
                "containers": [{"name": "main", "resources": None, "ports": None}],
                "overhead": None,
                "resources": None,
            },
            "status": {"phase": "Pending", "conditions": None},
        }
        assert read(made) == Pod("shop", "p", "u", {"pods": 1}, phase="Pending")
        made["status"] = None  # cut off, and who knows what else was
        with pytest.raises(UnreadableObjectError, match=r"Pod shop/p: status\.phase: is missing"):
            read(made)
