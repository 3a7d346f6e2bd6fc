package packages

import (
	"errors"
	"io"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestEtcdQuotes: a value stays one value, whatever it has.
func TestEtcdQuotes(t *testing.T) {
	rendering := func(plan, value string) []string {
		return append(ofCatalog("render", "etcd", "BACKUP_STORE=shared", "BACKUP_USER=team", "BACKUP_PASSWORD=y", "BACKUP_KEY=z", "BACKUP_CA=c", value), "--plan", plan)
	}
	const hostile = "a\"]\n- name: LD_PRELOAD\n  value: $(id)"
	for plan, value := range map[string]string{"switchover": "SWITCHOVER_TO=" + hostile, "recover": "RECOVER_FROM=" + hostile, "deploy": "BACKUP_CA=" + hostile} {
		out, _ := commandtest.Expect(t, New, 0, "", rendering(plan, value)...)
		for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out), 4096); ; {
			job := &batchv1.Job{}
			if err := decoder.Decode(job); errors.Is(err, io.EOF) {
				break
			}
			for _, container := range job.Spec.Template.Spec.Containers {
				for _, variable := range container.Env {
					if variable.Name == "LD_PRELOAD" {
						t.Errorf("plan %s: a variable comes from the value %s", plan, value)
					}
				}
			}
		}
	}
	// Only a member of this Instance has its volume mounted.
	out, _ := commandtest.Expect(t, New, 0, "", rendering("recover", "RECOVER_FROM=other-0")...)
	if strings.Contains(out, "data-other-0") {
		t.Error("plan recover mounts the volume of another Instance")
	}
}
