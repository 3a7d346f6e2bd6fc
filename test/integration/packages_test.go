package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

var _ = Describe("Packages of others install, take an update, and leave nothing over:", Label("corpus-packages", "corpus", "slow"), func() {
	for _, tc := range []struct {
		name, update string
		plans        []string
		reason       string
	}{
		{"first-operator", "replicas=3", nil, "one Deployment"},
		{"mysql", "PASSWORD=other", []string{"backup", "restore"}, "a claim, Jobs named by the plan, Delete tasks; backup and restore by trigger"},
		{"elastic", "INGEST_NODE_COUNT=2", nil, "four serial phases of StatefulSets"},
		{"confluent-schema-registry", "MEMORY=300Mi", nil, "conditions and several templates in one task"},
	} {
		It(tc.name, func() {
			t := GinkgoTB()
			root, ns := corpus.Require(t), cluster.NewNamespace(t)
			if tc.name == "elastic" {
				tc.update = firstParameter(t, filepath.Join(root, "packages", tc.name, "operator"))
			}
			kudo(t, 0, "install", filepath.Join(root, "packages", tc.name, "operator"), "--instance", "i", "-n", ns, "--wait", "--wait-time", "180")
			contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), "Plan deploy (serial strategy) [COMPLETE]")
			for _, plan := range tc.plans {
				kudo(t, 0, "plan", "trigger", "--name", plan, "--instance", "i", "-n", ns, "--wait", "--wait-time", "180")
			}
			kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", tc.update, "--wait", "--wait-time", "180")
			contains(t, kudo(t, 0, "plan", "history", "--instance", "i", "-n", ns), "parameters changed: "+strings.SplitN(tc.update, "=", 2)[0])
			kudo(t, 0, "uninstall", "--instance", "i", "-n", ns, "--wait")
			env.Eventually(t, "nothing left over ("+tc.reason+")", env.Condition(func() bool { return len(leftoversBut(t, ns, tc.name)) == 0 }))
		})
	}
})

// leftoversBut leaves out the claims of StatefulSets, which Kubernetes keeps, since they hold data.
func leftoversBut(t testing.TB, ns, name string) []string {
	var out []string
	for _, l := range leftovers(t, ns) {
		if name == "elastic" && strings.Contains(l, "PersistentVolumeClaim") {
			continue
		}
		out = append(out, l)
	}
	return out
}

func firstParameter(t testing.TB, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "params.yaml"))
	env.Must(t, err)
	for _, line := range strings.Split(string(text), "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- name: "); ok && strings.Contains(name, "COUNT") {
			return name + "=2"
		}
	}
	t.Fatal("no parameter with COUNT")
	return ""
}

var _ = Describe("Packages for APIs that are no longer served fail at once, with the object, the API and the remedy:", Label("corpus-packages-of-old-apis", "corpus"), func() {
	for _, name := range []string{"redis", "zookeeper"} {
		It(name, func() {
			t := GinkgoTB()
			root, ns := corpus.Require(t), cluster.NewNamespace(t)
			out := kudo(t, 3, "install", filepath.Join(root, "packages", name, "operator"), "--instance", "i", "-n", ns, "--wait")
			contains(t, out, "PodDisruptionBudget "+ns+"/", "policy/v1beta1 is not served by this cluster", "serves PodDisruptionBudget as policy/v1", "change apiVersion")
			var left []string
			for _, l := range leftovers(t, ns) {
				if strings.Contains(l, "Service") || strings.Contains(l, "StatefulSet") {
					left = append(left, l)
				}
			}
			if len(left) > 0 {
				t.Errorf("objects of the refused task were written before it was refused: %v", left)
			}
		})
	}
})

var _ = Describe("A package of the catalog does what its README says:", Label("catalog", "slow"), func() {
	for _, tc := range []struct {
		name  string
		args  []string
		after [][]string
	}{
		{"hello", nil, [][]string{{"update", "-p", "REPLICAS=3"}}},
		{"guestbook", nil, [][]string{{"update", "-p", "INGRESS_ENABLED=true"}, {"update", "-p", "INGRESS_ENABLED=false"}}},
		{"postgres", []string{"-p", "PASSWORD=correct-horse", "-p", "BACKUP_KEY=battery-staple", "-p", "IMAGE_REGISTRY=localhost/catalog"}, [][]string{{"plan", "trigger", "--name", "backup"}, {"plan", "trigger", "--name", "restore"}}},
	} {
		It(tc.name, func() {
			t := GinkgoTB()
			ns := cluster.NewNamespace(t)
			common := []string{"--instance", "i", "-n", ns, "--wait", "--wait-time", "180"}
			kudo(t, 0, append([]string{"install", filepath.Join(sourcetree.Root(), "operators/catalog", tc.name, "operator")}, append(tc.args, common...)...)...)
			for _, args := range tc.after {
				kudo(t, 0, append(args, common...)...)
			}
			kudo(t, 0, append([]string{"uninstall"}, common...)...)
		})
	}
})

var _ = It("An Instance can be made of what is installed, of the highest version if none is named", Label("in-cluster"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	for _, version := range []string{"0.9.0", "0.10.0", "0.2.0"} {
		dir := write(t, map[string]string{"operator.yaml": strings.Replace(operatorYAML, "0.1.0", version, 1), "params.yaml": "", "templates/app.yaml": configMap})
		kudo(t, 0, "install", dir, "-n", ns, "--skip-instance")
	}
	contains(t, kudo(t, 1, "install", "other", "--in-cluster", "-n", ns), "no OperatorVersion of operator other")
	contains(t, kudo(t, 1, "install", "wrong", "--in-cluster", "-n", ns, "--operator-version", "7"), "no OperatorVersion of operator wrong")
	kudo(t, 0, "install", "wrong", "--in-cluster", "-n", ns, "--wait")
	contains(t, kudo(t, 0, "get", "instances", "-n", ns), "wrong-0.10.0", "COMPLETE")
	contains(t, kudo(t, 1, "install", "wrong", "--in-cluster", "-n", ns), "exists already")
})
