package packages

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// page is the manifest of a release with one object.
const page = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page, labels: {heritage: Helm}}\n"

var thing = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}

// newMove returns a move of release shop between Helm and Instance shop, and what it prints.
func newMove(t *testing.T, server *apitest.Server) (m *helmMove, printed *bytes.Buffer) {
	t.Helper()
	printed = &bytes.Buffer{}
	return &helmMove{env: command.NewEnv(strings.NewReader(""), printed, printed), client: server.Client(), namespace: "lab", release: "shop",
		instance: "shop", yes: true}, printed
}

// instanceWith returns Instance shop, whose plan deploy is complete and has written these objects.
func instanceWith(resources ...v1beta1.ResourceStatus) *v1beta1.Instance {
	i := gen.Instance("shop", gen.Version("lab", "shop"), nil)
	i.UID = "i"
	i.Status.Resources = resources
	i.Status.AggregatedStatus.Status = v1beta1.Complete
	return i
}

func entry(apiVersion, kind, name string, uid types.UID) v1beta1.ResourceStatus {
	return v1beta1.ResourceStatus{APIVersion: apiVersion, Kind: kind, Namespace: "lab", Name: name, UID: uid}
}

// ownedPage returns ConfigMap page as the Instance has taken it over.
func ownedPage(mods ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	out := &corev1.ConfigMap{ObjectMeta: ofRelease("lab", "page")}
	out.UID = "p"
	out.Labels = map[string]string{"heritage": "kudo", "kudo.dev/instance": "shop"}
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "shop", UID: "i"}}
	for _, mod := range mods {
		mod(out)
	}
	return out
}

func unmarked(c *corev1.ConfigMap) { c.Annotations = nil }

// secretOf returns the Secret of release shop, which is set aside for Instance shop if aside is set.
func secretOf(manifest, status string, aside bool) *corev1.Secret {
	release := gen.HelmRelease("lab", "shop", manifest)
	release.Info.Status = status
	secret := gen.HelmSecret(release)
	if aside {
		secret.Labels["owner"], secret.Labels[v1beta1.FromHelmLabel] = "kudo", "shop"
	}
	return secret
}

// TestReturn is P31: only an Instance that has the release is deleted, and its objects lose their owner before.
func TestReturn(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: shop}\n"
	held := entry("v1", "ConfigMap", "page", "p")
	for _, tc := range []struct {
		reason   string
		secret   *corev1.Secret
		instance *v1beta1.Instance
		page     *corev1.ConfigMap
		err      string
		prints   []string
		heritage string
	}{
		{"P31: the Instance of the release", secretOf(page, "deployed", true), instanceWith(held), ownedPage(), "", []string{"is Helm's again"}, "Helm"},
		{"P31: before the release is set aside", secretOf(page, "deployed", false), instanceWith(held), ownedPage(), "", nil, "Helm"},
		{"P31: an Instance of something else", secretOf(page, "deployed", false), instanceWith(entry("v1", "ConfigMap", "postgres", "o")), ownedPage(),
			"instance lab/shop has no object of release lab/shop: nothing was changed; name the right one by --instance", nil, "kudo"},
		{"P31: one that has written nothing yet", secretOf(page, "deployed", false), instanceWith(entry("v1", "ConfigMap", "page", "")), ownedPage(),
			"has no object of release", nil, "kudo"},
		{"P31: objects that the release does not have", secretOf(page, "deployed", true), instanceWith(held, entry("v1", "ConfigMap", "more", "m")),
			ownedPage(), "", []string{"release lab/shop does not have ConfigMap more of Instance shop: the objects stay, without an owner"}, "Helm"},
		{"P31: all objects are those of the install plan", secretOf(role, "deployed", true), instanceWith(), ownedPage(), "", nil, "kudo"},
		{"P31: and nothing says which Instance it is", secretOf(role, "deployed", false), instanceWith(), ownedPage(), "has no object of release", nil, "kudo"},
		{"P31: the manager has died after its write", secretOf(page+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n", "deployed", true),
			instanceWith(entry("v1", "ConfigMap", "b", "b"), entry("v1", "ConfigMap", "page", "")), ownedPage(), "", nil, "Helm"},
		{"P31: the object is another one, which the Instance does not own", secretOf(page, "deployed", true), instanceWith(entry("v1", "ConfigMap", "page", "x")),
			ownedPage(func(c *corev1.ConfigMap) { c.OwnerReferences = nil }), "", nil, "kudo"},
		{"P31: no revision is deployed", secretOf(page, "uninstalling", true), instanceWith(held), ownedPage(), "",
			[]string{"the label heritage of its objects is removed instead of restored", "no revision of the release is deployed"}, ""},
		{"P31: no revision is deployed, and Helm has marked no object", secretOf(page, "uninstalling", true), instanceWith(held), ownedPage(unmarked),
			"has no object of release", nil, "kudo"},
		{"P31: a kind of the release is not served", secretOf(page+"---\napiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\n", "deployed", true),
			instanceWith(held, entry("example.org/v1", "Thing", "t", "t")), ownedPage(), "",
			[]string{"the label heritage of its objects is removed instead of restored", "Thing"}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := apitest.Start(t, tc.secret, tc.instance, tc.page)
			m, printed := newMove(t, server)
			err := m.giveBack(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("the error is %v, want %q", err, tc.err)
			}
			if there := server.Get(tc.instance) != nil; there != (tc.err != "") {
				t.Errorf("the Instance exists: %t", there)
			}
			if owner := server.Get(tc.secret).GetLabels()["owner"]; tc.err == "" && owner != "helm" || tc.err != "" && owner != tc.secret.Labels["owner"] {
				t.Errorf("the Secret is of %s", owner)
			}
			live := server.Get(tc.page)
			if got := live.GetLabels()["heritage"]; got != tc.heritage {
				t.Errorf("the label heritage is %q, want %q", got, tc.heritage)
			}
			if owned := v1beta1.HasOwner(live, "i"); owned != (tc.heritage == "kudo" && len(tc.page.OwnerReferences) > 0) {
				t.Errorf("the Instance owns the object: %t", owned)
			}
			for _, want := range tc.prints {
				if !strings.Contains(printed.String(), want) {
					t.Errorf("%q is not printed: %s", want, printed)
				}
			}
		})
	}
}

// TestReturnUnservedKind is P31: objects of a kind that is not served are deleted only if the kind has no definition; otherwise they would come back
// to an Instance that does not exist, and the garbage collector would delete them.
func TestReturnUnservedKind(t *testing.T) {
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": "example.org", "names": map[string]any{"kind": "Thing"}}}}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("things.example.org")
	owned := &unstructured.Unstructured{}
	owned.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Thing"})
	owned.SetNamespace("lab")
	owned.SetName("t")
	owned.SetUID("t")
	owned.SetOwnerReferences(ownedPage().OwnerReferences)
	for _, tc := range []struct {
		reason, served string
		live           []client.Object
		err            string
	}{
		{"P31: without a definition", "", nil, ""},
		{"P31: with a definition", "", []client.Object{definition}, "wait until its CustomResourceDefinition is served"},
		{"P31: in another version", "v2", []client.Object{definition, owned}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			instance := instanceWith(entry("v1", "ConfigMap", "page", "p"), entry("example.org/v1", "Thing", "t", "t"))
			server := apitest.Start(t, append(tc.live, secretOf(page, "deployed", true), instance, ownedPage())...)
			if tc.served != "" {
				server.AddKind(thing.GroupKind().WithVersion(tc.served), true)
			}
			m, _ := newMove(t, server)
			err := m.giveBack(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("the error is %v, want %q", err, tc.err)
			}
			if there := server.Get(instance) != nil; there != (tc.err != "") {
				t.Errorf("the Instance exists: %t", there)
			}
			if tc.served != "" && v1beta1.HasOwner(server.Get(owned), "i") {
				t.Error("the Instance owns the object still")
			}
		})
	}
}
