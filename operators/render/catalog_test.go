package render_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
)

// storeUsers returns the packages of the catalog that use the backup store, by name.
func storeUsers(t *testing.T) map[string]*operators.Package {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join("..", "catalog", "*", "operator"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*operators.Package{}
	for _, folder := range folders {
		pkg, err := operators.Read(os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		if pkg.Templates["_store.yaml"] != "" {
			out[pkg.Operator.Name] = pkg
		}
	}
	if out["mariadb"] == nil {
		t.Fatalf("mariadb does not use the backup store; these do: %v", slices.Collect(maps.Keys(out)))
	}
	return out
}

// TestBackupStoreIsShared: all packages that use the store have it from the same templates, since a shared object must be the same for all (K18).
func TestBackupStoreIsShared(t *testing.T) {
	users := storeUsers(t)
	for name, pkg := range users {
		for template, text := range users["mariadb"].Templates {
			if (template == "_store.yaml" || strings.HasPrefix(template, "install/")) && pkg.Templates[template] != text {
				t.Errorf("template %s of %s differs from that of mariadb", template, name)
			}
		}
		for template := range pkg.Templates {
			if strings.HasPrefix(template, "install/") && users["mariadb"].Templates[template] == "" {
				t.Errorf("%s has a template %s, which mariadb has not", name, template)
			}
		}
	}
}

// TestBackupStore: the containers that use the store can write their temporary files although their root is read-only, no two Instances share a
// repository, and only plan expire has the password that deletes backups (D1, D2, K18).
func TestBackupStore(t *testing.T) {
	for name, pkg := range storeUsers(t) {
		set := render.New(pkg.Templates)
		repositories := map[string]string{}
		for _, instance := range []struct{ namespace, name string }{{"team-a", "db"}, {"team", "a-db"}} {
			v, err := variables(pkg, map[string]string{"PASSWORD": "a", "BACKUP_USER": "team", "BACKUP_PASSWORD": "b", "BACKUP_KEY": "c", "BACKUP_CA": "d",
				"EXPIRE_PASSWORD": "e", "IMAGE_REGISTRY": "localhost/catalog"})
			if err != nil {
				t.Fatal(err)
			}
			v.Namespace, v.Name = instance.namespace, instance.name
			for step, secret := range map[string]string{"backup": instance.name + "-backup", "recover": instance.name + "-backup", "expire": instance.name + "-expire"} {
				v.PlanName, v.StepName = step, step
				result, err := set.Objects("job.yaml", v)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				job := &batchv1.Job{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result.Objects[0].Object, job); err != nil {
					t.Fatal(err)
				}
				c := job.Spec.Template.Spec.Containers[0]
				if got := secretOf(c, "RESTIC_REST_PASSWORD"); got != secret {
					t.Errorf("%s: step %s has the password of Secret %q, want %q", name, step, got, secret)
				}
				repository := strings.Replace(valueOf(c, "RESTIC_REPOSITORY"), ":8001/", ":8000/", 1)
				if owner, used := repositories[repository]; used && owner != instance.namespace+"/"+instance.name {
					t.Errorf("%s: step %s has the repository %s of Instance %s", name, step, repository, owner)
				}
				repositories[repository] = instance.namespace + "/" + instance.name
				for _, folder := range []string{valueOf(c, "RESTIC_CACHE_DIR"), "/tmp"} {
					if !isMounted(c, folder) {
						t.Errorf("%s: step %s: folder %q lies in no volume", name, step, folder)
					}
				}
			}
		}
		if len(repositories) != 2 {
			t.Errorf("%s: two Instances have %d repositories: %v", name, len(repositories), repositories)
		}
	}
}

// secretOf returns the name of the Secret that an environment variable comes from, or "".
func secretOf(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name && e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			return e.ValueFrom.SecretKeyRef.Name
		}
	}
	return ""
}

// valueOf returns the value of an environment variable, or "".
func valueOf(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// isMounted reports whether a folder lies in a volume of the container.
func isMounted(c corev1.Container, folder string) bool {
	for _, m := range c.VolumeMounts {
		if strings.HasPrefix(folder+"/", m.MountPath+"/") {
			return true
		}
	}
	return false
}
