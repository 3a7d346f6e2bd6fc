package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// migrationObjects is how many custom resources are migrated: KUDO_BENCH_OBJECTS, such as 100000, or 2,000.
func migrationObjects(b *testing.B) int {
	b.Helper()
	text := os.Getenv("KUDO_BENCH_OBJECTS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	must(b, err)
	return n
}

// definition is that of ships in a group, stored in one of its two versions.
func definition(group, storage string) string {
	out := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ships." + group + "}\nspec:\n  group: " + group +
		"\n  scope: Namespaced\n  names: {kind: Ship, plural: ships, singular: ship}\n  versions:\n"
	for _, name := range []string{"v1alpha1", "v1"} {
		out += fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}\n",
			name, name == storage)
	}
	return out
}

func definitionObject(b *testing.B, group, storage string) *unstructured.Unstructured {
	b.Helper()
	crd := &unstructured.Unstructured{}
	must(b, yaml.Unmarshal([]byte(definition(group, storage)), &crd.Object))
	return crd
}

// defines is an OperatorVersion with the definition in its install plan.
func defines(place, group, version, storage string) *v1beta1.OperatorVersion {
	ov := gen.Version(place, "ships-"+version, gen.Template("crd.yaml", definition(group, storage)), gen.Apply("crd", "crd.yaml"), gen.ConfigMaps("cm", 1),
		gen.Param("VALUE", "a", ""), gen.Serial("install", "crd"), gen.Serial("deploy", "cm"), gen.InstallPlan("install"))
	ov.Spec.Operator.Name, ov.Spec.Version = "ships", version
	ov.Spec.InstallPolicy = &v1beta1.InstallPolicy{SharedUpdates: v1beta1.SameOperatorUpdates}
	return ov
}

// build creates ships that are stored in v1alpha1, once the definition is served.
func build(b *testing.B, c *env.Cluster, group, place string, n int) {
	b.Helper()
	create := func(i int) error {
		ship := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(i)}}}
		ship.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "Ship"})
		ship.SetNamespace(place)
		ship.SetName(fmt.Sprintf("ship-%06d", i))
		return c.Create(context.Background(), ship)
	}
	env.Eventually(b, "a definition that is served", func() string {
		if err := create(0); err != nil {
			return err.Error()
		}
		return ""
	})
	limited := errgroup.Group{}
	limited.SetLimit(32)
	for i := 1; i < n; i++ {
		limited.Go(func() error { return create(i) })
	}
	must(b, limited.Wait())
}

func storedVersions(b *testing.B, c *env.Cluster, group string) []string {
	b.Helper()
	crd := definitionObject(b, group, "v1")
	must(b, c.Get(context.Background(), client.ObjectKeyFromObject(crd), crd))
	stored, _, err := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	must(b, err)
	return stored
}

// rewriteBare does what the manager does, without a state: pages of 500 objects, 8 writes at a time.
func rewriteBare(b *testing.B, c *env.Cluster, group string) {
	b.Helper()
	ctx := context.Background()
	objects, err := metadata.NewForConfig(c.Config)
	must(b, err)
	resource := objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"})
	for token := ""; ; {
		list, err := resource.List(ctx, metav1.ListOptions{Limit: 500, Continue: token})
		if expired := new(apierrors.StatusError); errors.As(err, &expired) && apierrors.IsResourceExpired(err) {
			token = expired.ErrStatus.Continue
			continue
		}
		must(b, err)
		limited := errgroup.Group{}
		limited.SetLimit(8)
		for i := range list.Items {
			limited.Go(func() error {
				_, err := resource.Namespace(list.Items[i].Namespace).Patch(ctx, list.Items[i].Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
				return err
			})
		}
		must(b, limited.Wait())
		if token = list.Continue; token == "" {
			break
		}
	}
	crd := definitionObject(b, group, "v1")
	must(b, c.Status().Patch(ctx, crd, client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1"]}}`))))
}

// BenchmarkMigration: the manager rewrites custom resources whose storage version has changed; the aim is at most 1.5 times the time that a bare
// client takes for as many others, without the bound of its rate; and with a request for each object and three for each page.
func BenchmarkMigration(b *testing.B) {
	e, err := env.Start("--profile", "api", "--manager-arg=--migration-rate=0")
	must(b, err)
	b.Cleanup(e.Stop)
	c, err := e.Connect()
	must(b, err)
	ctx, n, place := context.Background(), migrationObjects(b), namespace(b, c)
	must(b, c.Create(ctx, defines(place, "kudo.example.com", "1.0.0", "v1alpha1")))
	must(b, c.Create(ctx, definitionObject(b, "bare.example.com", "v1alpha1")))
	began := time.Now()
	build(b, c, "kudo.example.com", place, n)
	build(b, c, "bare.example.com", place, n)
	b.Logf("%d objects created in %s", 2*n, time.Since(began).Round(time.Second))

	crd, wanted := definitionObject(b, "bare.example.com", "v1"), definitionObject(b, "bare.example.com", "v1")
	must(b, c.Get(ctx, client.ObjectKeyFromObject(crd), crd))
	crd.Object["spec"].(map[string]any)["versions"] = wanted.Object["spec"].(map[string]any)["versions"]
	must(b, c.Update(ctx, crd))
	env.Eventually(b, "a storage version that has changed", func() string {
		if stored := storedVersions(b, c, "bare.example.com"); len(stored) != 2 {
			return fmt.Sprint(stored)
		}
		return ""
	})
	before, began := requests(b, c), time.Now()
	rewriteBare(b, c, "bare.example.com")
	bare, bareRequests := time.Since(began), requests(b, c).Since(before)

	must(b, c.Create(ctx, defines(place, "kudo.example.com", "1.1.0", "v1")))
	var started time.Time
	env.Within(b, time.Hour, "the end of the migration", func() string {
		list := &v1beta1.InstallationList{}
		must(b, c.List(ctx, list))
		why := "it has not begun"
		for _, i := range list.Items {
			m := i.Status.Migration("ships.kudo.example.com")
			if m == nil {
				continue
			}
			if started.IsZero() {
				started, before = time.Now(), requests(b, c)
			}
			why = fmt.Sprintf("%d of %d: %s", m.Done, m.Of, m.Message)
		}
		if !started.IsZero() && slices.Equal(storedVersions(b, c, "kudo.example.com"), []string{"v1"}) {
			return ""
		}
		return why
	})
	took, spent := time.Since(started), requests(b, c).Since(before)
	stored, err := e.Stored("/registry/kudo.example.com/ships/")
	must(b, err)
	for key, text := range stored {
		ship := &unstructured.Unstructured{}
		must(b, ship.UnmarshalJSON(text))
		if ship.GetAPIVersion() != "kudo.example.com/v1" {
			b.Errorf("%s is stored in %s", key, ship.GetAPIVersion())
		}
	}
	if len(stored) != n {
		b.Errorf("etcd has %d objects, want %d", len(stored), n)
	}
	b.ReportMetric(float64(n), "objects")
	b.ReportMetric(took.Seconds(), "s/kudo")
	b.ReportMetric(bare.Seconds(), "s/bare")
	b.ReportMetric(took.Seconds()/bare.Seconds(), "times-bare")
	b.ReportMetric(float64(spent.Of("ships"))/float64(n), "requests/object")
	b.ReportMetric(float64(bareRequests.Of("ships"))/float64(n), "bare-requests/object")
	b.Logf("kudo: %v\nbare: %v", spent, bareRequests)
}
