package rights

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// subject is a package of the catalog or by others.
type subject struct {
	name, dir string
	// parameters that it needs.
	parameters map[string]string
	// changes are parameters that are set afterwards, one after the other: they switch objects on and off.
	changes []string
	// outdated packages have objects that no Kubernetes of today serves: their plans fail permanently, before they write.
	outdated bool
	// prepare makes what has to be in the namespace.
	prepare func(t testing.TB, namespace string)
}

func subjects(t testing.TB) []subject {
	t.Helper()
	known := map[string]subject{
		"etcd":        {parameters: map[string]string{"PASSWORD": "x", "BACKUP_USER": "team", "BACKUP_PASSWORD": "y", "BACKUP_KEY": "z", "BACKUP_CA": "c", "IMAGE_REGISTRY": "localhost/catalog"}},
		"guestbook":   {changes: []string{"INGRESS_ENABLED=true", "INGRESS_ENABLED=false"}},
		"mariadb":     {parameters: map[string]string{"PASSWORD": "x", "BACKUP_USER": "team", "BACKUP_PASSWORD": "y", "BACKUP_KEY": "z", "BACKUP_CA": "c", "IMAGE_REGISTRY": "localhost/catalog"}},
		"noticeboard": {parameters: map[string]string{"AUTHORS": "[alice]"}},
		"postgres":    {parameters: map[string]string{"PASSWORD": "x", "BACKUP_KEY": "y", "IMAGE_REGISTRY": "localhost/catalog"}},
		"printshop":   {prepare: publish},
		"rabbitmq":    {parameters: map[string]string{"PASSWORD": "x", "BACKUP_USER": "team", "BACKUP_PASSWORD": "y", "BACKUP_KEY": "z", "BACKUP_CA": "c", "IMAGE_REGISTRY": "localhost/catalog"}},
		"redis":       {parameters: map[string]string{"PASSWORD": "x", "BACKUP_STORE": "none", "IMAGE_REGISTRY": "localhost/catalog"}},
		"zookeeper":   {outdated: true},
	}
	out := []subject{{name: "whole", dir: filepath.Join(sourcetree.Root(), "test", "rights", "testdata", "whole"), parameters: map[string]string{"PASSWORD": "correct-horse"}, changes: []string{"OPEN=true"}}}
	roots := []string{filepath.Join(sourcetree.Root(), "operators", "catalog")}
	if dir := corpus.Dir(); dir != "" {
		roots = append(roots, filepath.Join(dir, "packages"))
	}
	for _, root := range roots {
		entries, err := os.ReadDir(root)
		env.Must(t, err)
		for _, e := range entries {
			s := known[e.Name()]
			if e.Name() == "redis" && root != roots[0] {
				s = subject{outdated: true} // by others, of the same name
			}
			s.name, s.dir = e.Name(), filepath.Join(root, e.Name(), "operator")
			if e.IsDir() {
				out = append(out, s)
			}
		}
	}
	if len(out) < 8 {
		t.Fatalf("only %d packages were found", len(out))
	}
	return out
}

// versions are the OperatorVersions of a package and of its dependencies; its own is the last.
func (s subject) versions(t testing.TB, namespace string) []*v1beta1.OperatorVersion {
	t.Helper()
	found, err := repository.Resolve(context.Background(), s.dir, ".")
	env.Must(t, err)
	packages, err := repository.Chain{repository.Local{Base: "."}}.WithDependencies(context.Background(), found)
	env.Must(t, err)
	var out []*v1beta1.OperatorVersion
	for _, p := range packages {
		_, version, err := operators.Convert(p, namespace)
		env.Must(t, err)
		if slices.ContainsFunc(version.Spec.Parameters, func(p v1beta1.Parameter) bool { return p.Name == "STORE_IMAGE_REGISTRY" }) {
			version.Spec.InstallParameters = map[string]string{"STORE_IMAGE_REGISTRY": "localhost/catalog"}
		}
		out = append(out, version)
	}
	return out
}

// version is the OperatorVersion of a package.
func (s subject) version(t testing.TB, namespace string) *v1beta1.OperatorVersion {
	t.Helper()
	all := s.versions(t, namespace)
	return all[len(all)-1]
}

// namespace is one of its own, or one that all Instances of the package share, if it installs something for the cluster: so
// that it does that once.
func (s subject) namespace(t testing.TB) string {
	t.Helper()
	if ov := s.version(t, ""); ov.Spec.InstallPlan == "" && ov.Spec.CRDTarball == nil {
		return suite.NewBareNamespace(t)
	}
	one, _ := shared.LoadOrStore(s.name, sync.OnceValue(func() string {
		ns, err := suite.Namespace(context.Background())
		env.Must(t, err)
		if s.prepare != nil {
			s.prepare(t, ns)
		}
		return ns
	}))
	return one.(func() string)()
}

// shared are the namespaces of packages that install something, as functions that return them.
var shared sync.Map

// deleteShared deletes them.
func deleteShared() {
	shared.Range(func(_, one any) bool {
		_ = suite.Delete(context.Background(), &corev1.Namespace{ObjectMeta: gen.Meta("", one.(func() string)())})
		return true
	})
}

// install creates the OperatorVersions in a namespace, if they are not there.
func (s subject) install(t testing.TB, namespace string) *v1beta1.OperatorVersion {
	t.Helper()
	all := s.versions(t, namespace)
	for _, version := range all {
		if err := suite.Create(context.Background(), version); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return all[len(all)-1]
}

// publish makes the ConfigMap with the CustomResourceDefinitions of the printshop.
func publish(t testing.TB, namespace string) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(sourcetree.Root(), "operators", "catalog", "printshop", "tarballs", "1.5.0.tar.gz"))
	env.Must(t, err)
	env.Must(t, suite.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: gen.Meta(namespace, "printshop-crds-1.5.0"), BinaryData: map[string][]byte{"crds.tar.gz": packed}}))
}
