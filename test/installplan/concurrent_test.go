package installplan

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// many builds OperatorVersions, each in a namespace of its own, that install the same objects into one namespace.
func many(t testing.TB, place string, versions, objects int) []*v1beta1.OperatorVersion {
	var out []*v1beta1.OperatorVersion
	for range versions {
		mods, names := []gen.VersionMod{}, []string{}
		for n := range objects {
			name := fmt.Sprintf("o%d.yaml", n)
			mods = append(mods, gen.Template(name, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared-%d, namespace: %s}\ndata: {key: value}\n", n, place)))
			names = append(names, name)
		}
		out = append(out, gen.Version(suite.NewNamespace(t), "many", append(mods, gen.Apply("all", names...), gen.Serial("install", "all"), gen.InstallPlan("install"))...))
	}
	return out
}

var _ = It("Objects that ten OperatorVersions install at the same time have one creator, are owned by all, and are deleted after the last", func() {
	t := GinkgoTB()
	place := suite.NewNamespace(t)
	for round := range 3 {
		versions := many(t, place, 10, 20)
		var group sync.WaitGroup
		for _, ov := range versions {
			group.Go(func() { defer GinkgoRecover(); env.Must(t, suite.Create(ctx, ov)) })
		}
		group.Wait()
		for _, ov := range versions {
			complete(t, ended(t, ov, 1))
		}
		created := 0
		for _, ov := range versions {
			i := holder(ov)
			created += int(i.Status.Created)
			if i.Status.Created+i.Status.Shared != 20 {
				t.Errorf("round %d: %s has %+v", round, i.Name, i.Status)
			}
		}
		if created != 20 {
			t.Errorf("round %d: %d creators of 20 objects", round, created)
		}
		held(t, place, 20, 10)

		t.Log("all but one go at a time: nothing is lost")
		for _, ov := range versions[1:] {
			group.Go(func() { defer GinkgoRecover(); env.Must(t, suite.Delete(ctx, ov)) })
		}
		group.Wait()
		for _, ov := range versions[1:] {
			released(t, ov)
		}
		held(t, place, 20, 1)
		t.Log("one comes while the last goes")
		next := many(t, place, 1, 20)[0]
		group.Go(func() { defer GinkgoRecover(); env.Must(t, suite.Delete(ctx, versions[0])) })
		group.Go(func() { defer GinkgoRecover(); env.Must(t, suite.Create(ctx, next)) })
		group.Wait()
		released(t, versions[0])
		complete(t, ended(t, next, 1))
		env.Eventually(t, "all objects under the last one", func() string {
			list := &corev1.ConfigMapList{}
			env.Must(t, suite.List(ctx, list, client.InNamespace(place), client.MatchingLabels{v1beta1.HeritageLabel: v1beta1.Heritage}))
			n := 0
			for _, cm := range list.Items {
				if cm.DeletionTimestamp == nil && len(owners(&cm)) == 1 && owners(&cm)[0] == next.InstallationName() {
					n++
				}
			}
			if n != 20 {
				return fmt.Sprintf("%d of 20", n)
			}
			return ""
		})
		uninstall(t, next)
		held(t, place, 0, 0)
	}
})

// held wants a number of objects, each with a number of owners.
func held(t testing.TB, place string, objects, holders int) {
	t.Helper()
	list := &corev1.ConfigMapList{}
	env.Must(t, suite.List(ctx, list, client.InNamespace(place), client.MatchingLabels{v1beta1.HeritageLabel: v1beta1.Heritage}))
	if len(list.Items) != objects {
		t.Errorf("%d objects, want %d", len(list.Items), objects)
	}
	for _, cm := range list.Items {
		if len(owners(&cm)) != holders {
			t.Errorf("%s has owners %v, want %d", cm.Name, owners(&cm), holders)
		}
	}
}
