package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// BenchmarkSharing: ten OperatorVersions install the same twenty objects at the same time. Each object costs at most two
// requests, the dry run and the join, for each OperatorVersion that shares it.
func BenchmarkSharing(b *testing.B) {
	_, c := start(b)
	ctx := context.Background()
	const versions, objects = 10, 20
	for b.Loop() {
		place := namespace(b, c)
		var all []*v1beta1.OperatorVersion
		for range versions {
			mods, names := []gen.VersionMod{}, []string{}
			for n := range objects {
				name := fmt.Sprintf("o%d.yaml", n)
				mods = append(mods, gen.Template(name, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared-%d, namespace: %s}\ndata: {key: value}\n", n, place)))
				names = append(names, name)
			}
			all = append(all, gen.Version(namespace(b, c), "many", append(mods, gen.Apply("all", names...), gen.Serial("install", "all"), gen.InstallPlan("install"))...))
		}
		before, began := requests(b, c), time.Now()
		var group sync.WaitGroup
		for _, ov := range all {
			group.Go(func() { must(b, c.Create(ctx, ov)) })
		}
		group.Wait()
		for _, ov := range all {
			env.Eventually(b, "an install plan that is complete", func() string {
				now := env.Read(b, c, &v1beta1.OperatorVersion{}, ov.Namespace, ov.Name)
				if now.Status.AggregatedStatus.Status != v1beta1.Complete {
					return fmt.Sprintf("%+v", now.Status.AggregatedStatus)
				}
				return ""
			})
		}
		took := time.Since(began)
		spent := requests(b, c).Since(before)
		b.ReportMetric(float64(spent.Of("configmaps"))/(versions*objects), "requests/object/version")
		b.ReportMetric(float64(took.Milliseconds()), "ms/install")
		b.Logf("%v", spent)
		before, began = requests(b, c), time.Now()
		for _, ov := range all {
			group.Go(func() { must(b, c.Delete(ctx, ov)) })
		}
		group.Wait()
		env.Eventually(b, "a release", func() string {
			list := &v1beta1.InstallationList{}
			must(b, c.List(ctx, list))
			if len(list.Items) > 0 {
				return fmt.Sprintf("%d left", len(list.Items))
			}
			return ""
		})
		b.ReportMetric(float64(requests(b, c).Since(before).Of("configmaps"))/(versions*objects), "release-requests/object/version")
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/release")
	}
}
