package crdtarball

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("A tarball that changes the storage version has the objects rewritten, and Instances of the version before go on (P18)", Label("P18"), func() {
	t := GinkgoTB()
	group, s, ns, other := unique(), serve(t), suite.NewNamespace(t), suite.NewNamespace(t)
	one := definition(group, "jobs", "size: {type: integer}")
	two := strings.Replace(one, "storage: true", "storage: false", 1) +
		"  - name: v2\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}\n"
	s.put("/3.0/crds.tgz", gen.Tarball(one))
	s.put("/3.1/crds.tgz", gen.Tarball(two))
	url := s.URL + "/{{ .AppVersion }}/crds.tgz"
	safe := func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball.CRDUpdatePolicy = v1beta1.UpdateIfSafe }
	first, second := version(s, ns, "3.0", group, "Job", url, safe), version(s, other, "3.1", group, "Job", url, safe)
	for _, ov := range []*v1beta1.OperatorVersion{first, second} {
		env.Must(t, suite.Create(ctx, ov))
	}
	deploy(t, first, "a")
	asked := watchNative(t, group)
	deploy(t, second, "b")
	live := crd("jobs." + group)
	// The cluster may take minutes: its garbage collector must know the kind first. kudo takes over if the cluster fails, or begins nothing.
	env.Within(t, 8*time.Minute, "a migration to v2", func() string {
		env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(live), live))
		stored, _, err := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
		env.Must(t, err)
		if !slices.Equal(stored, []string{"v2"}) {
			return fmt.Sprint(stored)
		}
		return ""
	})
	if hasNativeMigration {
		select {
		case <-asked:
		case <-time.After(env.DefaultTimeout):
			t.Error("the cluster was not asked to migrate the objects itself")
		}
	}
	stored, err := suite.Stored("/registry/" + group + "/jobs/")
	env.Must(t, err)
	for key, text := range stored {
		if !strings.Contains(string(text), `"apiVersion":"`+group+`/v2"`) {
			t.Errorf("%s: %s", key, text)
		}
	}
	if len(stored) != 2 {
		t.Errorf("etcd has %d objects", len(stored))
	}
	deploy(t, first, "c")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"VALUE":"b"}}}`))
	i := env.Read(t, suite, &v1beta1.Instance{}, ns, "a")
	env.Must(t, suite.Patch(ctx, i, patch))
	i, err = suite.Await(ctx, ns, "a", env.DefaultTimeout, env.PlanEnded("deploy", 2))
	env.Must(t, err)
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
		t.Errorf("deploy of the version before is %s: %s", st.Status, st.Message)
	}
})

// watchNative returns a channel that is closed once kudo has created a StorageVersionMigration for a resource of the group.
func watchNative(t testing.TB, group string) <-chan struct{} {
	done := make(chan struct{})
	if !hasNativeMigration {
		return done
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "storagemigration.k8s.io", Version: "v1beta1", Kind: "StorageVersionMigrationList"})
	watcher, err := suite.Watch(ctx, list, client.MatchingLabels{v1beta1.HeritageLabel: v1beta1.Heritage})
	env.Must(t, err)
	DeferCleanup(watcher.Stop)
	go func() {
		for event := range watcher.ResultChan() {
			live, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			of, _, _ := unstructured.NestedString(live.Object, "spec", "resource", "group")
			if of == group {
				close(done)
				return
			}
		}
	}()
	return done
}
