// Command crds prints the CustomResourceDefinitions of KubeVirt as one JSON list.
//
// virt-operator installs them in a real cluster. virt-controller waits for the caches of all of
// them, so a list with one missing makes it wait for ever.
package main

import (
	"encoding/json"
	"log"
	"os"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

var definitions = []func() (*extv1.CustomResourceDefinition, error){
	components.NewKubeVirtCrd,
	components.NewVirtualMachineInstanceCrd,
	components.NewVirtualMachineCrd,
	components.NewVirtualMachineInstanceMigrationCrd,
	components.NewPresetCrd,
	components.NewReplicaSetCrd,
	components.NewMigrationPolicyCrd,
	components.NewVirtualMachineInstancetypeCrd,
	components.NewVirtualMachineClusterInstancetypeCrd,
	components.NewVirtualMachinePreferenceCrd,
	components.NewVirtualMachineClusterPreferenceCrd,
	components.NewVirtualMachineSnapshotCrd,
	components.NewVirtualMachineSnapshotContentCrd,
	components.NewVirtualMachineRestoreCrd,
	components.NewVirtualMachineExportCrd,
	components.NewVirtualMachineCloneCrd,
	components.NewVirtualMachinePoolCrd,
	components.NewVirtualMachineBackupCrd,
	components.NewVirtualMachineBackupTrackerCrd,
}

func main() {
	var list []*extv1.CustomResourceDefinition
	for _, define := range definitions {
		definition, err := define()
		if err != nil {
			log.Fatal(err)
		}
		definition.APIVersion = extv1.SchemeGroupVersion.String()
		definition.Kind = "CustomResourceDefinition"
		list = append(list, definition)
	}
	if err := json.NewEncoder(os.Stdout).Encode(list); err != nil {
		log.Fatal(err)
	}
}
