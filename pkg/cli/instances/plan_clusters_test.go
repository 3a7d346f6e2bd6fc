package instances

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// onClusters starts the API servers of a hub that writes to clusters itself, and of cluster m1, in one kubeconfig. Cluster m2 has no context.
func onClusters(t *testing.T, template, copied *v1beta1.Instance, version *v1beta1.OperatorVersion) (hub, m1 *apitest.Server) {
	t.Helper()
	hub, m1 = onServer(t, template, version), apitest.Start(t, copied, version)
	file := hub.Kubeconfig(t, "lab")
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["one"] = config.Clusters["c"].DeepCopy()
	config.Clusters["one"].Server = m1.Config().Host
	config.Contexts["m1"] = config.Contexts["staging"].DeepCopy()
	config.Contexts["m1"].Cluster = "one"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	return hub, m1
}

// copyOf returns what a cluster has of an Instance of a hub, whose plan has failed.
func copyOf(template *v1beta1.Instance) *v1beta1.Instance {
	i := template.DeepCopy()
	i.UID, i.Annotations = "copy-uid", map[string]string{v1beta1.TemplateAnnotation: v1beta1.Template(template.UID, template.Generation),
		v1beta1.ReleasedAnnotation: v1beta1.Template(template.UID, template.Generation)}
	i.Status = v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", UID: "run-1", Status: v1beta1.FatalError,
		Message: "image not found", LastUpdatedTimestamp: &metav1.Time{}}}}
	return i
}

// TestPlanInClusters checks C41 without Karmada: the kubeconfig has a context for each cluster, and one without is named.
func TestPlanInClusters(t *testing.T) {
	version := web("1.0.0")
	template := book(version)
	_, m1 := onClusters(t, template, copyOf(template), version)
	for _, tc := range []struct {
		line  string
		code  int
		wants []string
	}{
		{"status book", 0, []string{"m1 Ready 4 deploy COMPLETE", "m2 Lost", "--clusters shows them"}},
		{"status book --cluster m1", 0, []string{"FATAL_ERROR", "image not found"}},
		{"status book --clusters", 1, []string{"Cluster m1: Plan(s) for", "FATAL_ERROR",
			"Cluster m2: the kubeconfig has no context of this name", "1 of 2 clusters cannot be read: m2"}},
		{"status book --cluster m2", 1, []string{"cluster m2: the kubeconfig has no context of this name"}},
		{"status book --cluster m3", 1, []string{"has no copy in cluster m3: it is placed on m1, m2"}},
		{"status book --cluster m1 --clusters", command.ExitUsage, []string{"cluster", "clusters"}},
		{"history book", 1, []string{"--clusters lists their runs"}},
		{"history book --cluster m1", 0, []string{"REVISION PLAN"}},
		{"history book --clusters", 1, []string{"CLUSTER REVISION PLAN", "m2 the kubeconfig has no context"}},
		{"retry book", 1, []string{"name one of them by --cluster"}},
		{"cancel book", 1, []string{"name one of them by --cluster"}},
		{"cancel book --cluster m1", 1, []string{"no plan of instance lab/book is running"}},
		{"retry book --cluster m1 --operator-version web", command.ExitUsage, []string{"operator-version"}},
		{"retry book --cluster m1", 0, []string{"plan deploy of instance lab/book is being retried"}},
	} {
		out, errs := commandtest.Expect(t, NewPlan, tc.code, "", append([]string{"plan"}, strings.Fields(tc.line)...)...)
		for _, want := range tc.wants {
			if !strings.Contains(words(out+" "+errs), want) {
				t.Errorf("%s: no %q in\n%s%s", tc.line, want, out, errs)
			}
		}
	}
	got := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "book")}
	m1.Read(got)
	if got.Annotations[v1beta1.RetryAnnotation] != "run-1" {
		t.Errorf("the retry has not reached the cluster: %v", got.Annotations)
	}
}

// TestPlanInClustersForPrograms checks what programs read.
func TestPlanInClustersForPrograms(t *testing.T) {
	version := web("1.0.0")
	template := book(version)
	onClusters(t, template, copyOf(template), version)
	out, _, _ := commandtest.Run(t, NewPlan, "", "plan", "status", "book", "--clusters", "-o", "json")
	var statuses []copyStatus
	if err := json.Unmarshal([]byte(out), &statuses); err != nil || len(statuses) != 2 || statuses[0].Cluster != "m1" || statuses[0].Status == nil ||
		statuses[1].Error == "" {
		t.Errorf("%v: %s", err, out)
	}
	out, _, _ = commandtest.Run(t, NewPlan, "", "plan", "history", "book", "--clusters", "-o", "json")
	var runs []copyRuns
	if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 2 || runs[0].Runs == nil || runs[1].Error == "" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestForeignCluster checks that a command which names a cluster changes no Instance that is not the copy: the hub says which clusters there
// are, and the kubeconfig of the user may have another cluster by that name.
func TestForeignCluster(t *testing.T) {
	version := web("1.0.0")
	template := book(version)
	foreign := copyOf(template)
	foreign.Annotations = map[string]string{v1beta1.TemplateAnnotation: v1beta1.Template("other-hub", 1)}
	_, m1 := onClusters(t, template, foreign, version)
	for _, verb := range []string{"retry", "cancel", "status"} {
		_, errs := commandtest.Expect(t, NewPlan, 1, "", "plan", verb, "book", "--cluster", "m1")
		if !strings.Contains(errs, "is not the copy of the one on the hub") {
			t.Errorf("%s: %s", verb, errs)
		}
	}
	for _, request := range m1.Requests() {
		if !strings.HasPrefix(request, "get ") && !strings.HasPrefix(request, "/apis") {
			t.Errorf("the other cluster got %s", request)
		}
	}
}

// TestUninstallFromClusters checks C36 without Karmada: the hub lets the Instance go when the clusters have no copy, so they need not be
// asked.
func TestUninstallFromClusters(t *testing.T) {
	version := web("1.0.0")
	for _, tc := range []struct {
		onDelete v1beta1.DeletionPolicy
		want     []string
	}{
		{"", []string{"to be deleted: instance lab/book in clusters m1, m2", "cluster m1: gone", "cluster m2: gone"}},
		{v1beta1.OrphanPlaced, []string{"in clusters m1, m2 stays", "cluster m1: left", "placement free"}},
	} {
		template := book(version)
		template.Spec.Placement.OnDelete = tc.onDelete
		onClusters(t, template, copyOf(template), version)
		out, _ := commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "book", "--wait", "--wait-time", "20s")
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	}
}
