package pods

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDependenciesOf has one spec for each field that names an object.
func TestDependenciesOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec string
		want         []string
	}{
		"None": {
			"no names",
			"{containers: [{name: a, env: [{name: A, valueFrom: {fieldRef: {fieldPath: a}}}]}], volumes: [{name: v, emptyDir: {}}]}",
			nil,
		},
		"EmptyNames": {
			"empty names",
			"{serviceAccountName: '', imagePullSecrets: [{}], volumes: [{name: v, secret: {}}, {name: w, csi: {driver: d}}]}",
			nil,
		},
		"EnvFrom": {
			"sources of all variables",
			"{containers: [{name: a, envFrom: [{secretRef: {name: s}}, {configMapRef: {name: c}}, {prefix: P}]}]}",
			[]string{"ConfigMap c", "Secret s"},
		},
		"Ephemeral": {
			"ephemeral containers",
			"{ephemeralContainers: [{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}",
			[]string{"Secret s"},
		},
		"Twice": {
			"each once",
			"{imagePullSecrets: [{name: s}, {name: s}], volumes: [{name: v, secret: {secretName: s}}]}",
			[]string{"Secret s"},
		},
		"Kinds": {
			"one name of several kinds",
			"{serviceAccountName: x, imagePullSecrets: [{name: x}], " +
				"volumes: [{name: v, configMap: {name: x}}, {name: w, persistentVolumeClaim: {claimName: x}}]}",
			[]string{"ConfigMap x", "Secret x", "ServiceAccount x", "PersistentVolumeClaim x"},
		},
		"Projected": {
			"other projected sources",
			"{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {}}]}}]}",
			nil,
		},
		"AzureFile": {"Azure's files", "{volumes: [{name: v, azureFile: {secretName: s, shareName: x}}]}", []string{"Secret s"}},
		"CephFS":    {"CephFS", "{volumes: [{name: v, cephfs: {monitors: [m], secretRef: {name: s}}}]}", []string{"Secret s"}},
		"Cinder":    {"Cinder", "{volumes: [{name: v, cinder: {volumeID: i, secretRef: {name: s}}}]}", []string{"Secret s"}},
		"FlexVolume": {
			"drivers of the older sort",
			"{volumes: [{name: v, flexVolume: {driver: d, secretRef: {name: s}}}]}",
			[]string{"Secret s"},
		},
		"ISCSI":     {"iSCSI", "{volumes: [{name: v, iscsi: {targetPortal: p, iqn: i, lun: 0, secretRef: {name: s}}}]}", []string{"Secret s"}},
		"RBD":       {"RBD", "{volumes: [{name: v, rbd: {monitors: [m], image: i, secretRef: {name: s}}}]}", []string{"Secret s"}},
		"ScaleIO":   {"ScaleIO", "{volumes: [{name: v, scaleIO: {gateway: g, system: s, secretRef: {name: s}}}]}", []string{"Secret s"}},
		"StorageOS": {"StorageOS", "{volumes: [{name: v, storageos: {secretRef: {name: s}}}]}", []string{"Secret s"}},
		"NoReference": {
			"drivers that log in without one",
			"{volumes: [{name: v, rbd: {monitors: [m], image: i}}, {name: w, cephfs: {monitors: [m]}}]}",
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Dependencies(spec(t, tc.spec), "lab") {
				if d.APIVersion != "v1" || d.Namespace != "lab" || d.LabelSelector != nil {
					t.Errorf("%s: %+v", tc.reason, d)
				}
				got = append(got, d.Kind+" "+d.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
