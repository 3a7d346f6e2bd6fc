package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
)

// TestBackupStore: the containers of mariadb's Jobs that use restic can write their temporary files although their root is
// read-only, and no two Instances share a repository.
func TestBackupStore(t *testing.T) {
	pkg, err := operators.Read(os.DirFS(filepath.Join("..", "catalog", "mariadb", "operator")))
	if err != nil {
		t.Fatal(err)
	}
	set := render.New(pkg.Templates)
	repositories := map[string]string{}
	for _, instance := range []struct{ namespace, name string }{{"team-a", "db"}, {"team", "a-db"}} {
		v, err := variables(pkg, map[string]string{"PASSWORD": "a", "BACKUP_PASSWORD": "b"})
		if err != nil {
			t.Fatal(err)
		}
		v.Namespace, v.Name = instance.namespace, instance.name
		for _, template := range []string{"backup/backup.yaml", "backup/restore.yaml"} {
			result, err := set.Objects(template, v)
			if err != nil {
				t.Fatal(err)
			}
			job := &batchv1.Job{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result.Objects[0].Object, job); err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, c := range append(job.Spec.Template.Spec.InitContainers, job.Spec.Template.Spec.Containers...) {
				repository := valueOf(c, "RESTIC_REPOSITORY")
				if repository == "" {
					continue
				}
				found++
				if owner, used := repositories[repository]; used && owner != instance.namespace+"/"+instance.name {
					t.Errorf("%s: container %s has the repository %s of Instance %s", template, c.Name, repository, owner)
				}
				repositories[repository] = instance.namespace + "/" + instance.name
				if folder := valueOf(c, "TMPDIR"); !isMounted(c, folder) {
					t.Errorf("%s: container %s: TMPDIR %q lies in no volume", template, c.Name, folder)
				}
			}
			if found != 1 {
				t.Errorf("%s: %d containers have a repository, want 1", template, found)
			}
		}
	}
	if len(repositories) != 2 {
		t.Errorf("two Instances have %d repositories: %v", len(repositories), repositories)
	}
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
