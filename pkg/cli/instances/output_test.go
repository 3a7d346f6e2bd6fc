package instances

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// onServer starts an API server in memory, which commands of the test connect to.
func onServer(t *testing.T, objects ...client.Object) *apitest.Server {
	t.Helper()
	noCluster(t)
	server := apitest.Start(t, objects...)
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '%s'}}]\n"+
		"contexts: [{name: c, context: {cluster: c, namespace: lab}}]\n", server.Config().Host)
	if err := os.WriteFile(os.Getenv("KUBECONFIG"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return server
}

// web is an OperatorVersion with the plans deploy and backup.
func web(version string) *v1beta1.OperatorVersion {
	ov := gen.Version("lab", operators.VersionName("web", "1.27", version), gen.ConfigMaps("apply", 1), gen.Param("VALUE", "a", ""),
		gen.Serial("deploy", "apply"), gen.Serial("backup", "apply"))
	ov.Spec.Operator.Name, ov.Spec.Version, ov.Spec.AppVersion = "web", version, "1.27"
	return ov
}

// site is an Instance of web whose deploy plan is complete.
func site(ov *v1beta1.OperatorVersion) *v1beta1.Instance {
	i := gen.Instance("site", ov, map[string]string{"VALUE": "b"})
	at := metav1.NewMicroTime(time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC))
	end := metav1.NewMicroTime(at.Add(3 * time.Second))
	i.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Complete}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {
		Name: "deploy", Status: v1beta1.Complete, UID: "run-1", Revision: 1, StartedTimestamp: &at, FinishedTimestamp: &end,
	}}
	i.Status.Resources = []v1beta1.ResourceStatus{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "lab", Name: "site-apply-0"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "lab", Name: "site-old"},
		{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "lab", Name: "site-data"},
	}
	return i
}

// TestOutput compares what commands print with testdata/<command>/<case>.golden.
func TestOutput(t *testing.T) {
	version := web("1.0.0")
	other := gen.Instance("other", gen.Version("elsewhere", "web-1.27-1.0.0"), nil)
	onServer(t, version, site(version), other, &v1beta1.Operator{ObjectMeta: gen.Meta("lab", "web")})
	for name, tc := range map[string]struct {
		command commandtest.Constructor
		reason  string
		code    int
		line    string
	}{
		"get-instances":       {NewGet, "those of the namespace", 0, "get instances"},
		"get-all":             {NewGet, "all kinds", 0, "get all"},
		"get-all-namespaces":  {NewGet, "all namespaces", 0, "get instances -A"},
		"get-name":            {NewGet, "names for other commands", 0, "get all -o name"},
		"get-none":            {NewGet, "an empty list is no error", 0, "get instances -n empty"},
		"get-none-json":       {NewGet, "and a list in JSON", 0, "get instances -n empty -o json"},
		"get-unknown":         {NewGet, "kinds exist", command.ExitUsage, "get pods"},
		"plan-status-missing": {NewPlan, "the Instance exists", command.ExitError, "plan status --instance none"},
		"plan-status-json":    {NewPlan, "status as such", 0, "plan status --instance site -o json"},
		"plan-history-none":   {NewPlan, "no run is recorded", 0, "plan history --instance site"},
		"plan-history-json":   {NewPlan, "an empty list is a list", 0, "plan history --instance site -o json"},
		"plan-trigger-none":   {NewPlan, "plans exist", command.ExitError, "plan trigger --instance site --name bakup"},
		"plan-cancel-idle":    {NewPlan, "a plan that runs can be canceled", command.ExitError, "plan cancel --instance site"},
		"plan-retry-complete": {NewPlan, "a plan that failed can be retried", command.ExitError, "plan retry --instance site"},
		"plan-install-none":   {NewPlan, "not all versions have an install plan", command.ExitError, "plan status --operator-version web-1.27-1.0.0"},
		"update-unknown":      {NewUpdate, "parameters are defined", command.ExitError, "update --instance site -p OTHER=1"},
		"update-unset":        {NewUpdate, "what is not set cannot be unset", command.ExitError, "update --instance site --unset OTHER"},
		"install-exists":      {NewInstall, "an Instance is not replaced", command.ExitError, "install web --in-cluster --instance site"},
		"install-no-operator": {NewInstall, "the operator is installed", command.ExitError, "install db --in-cluster"},
		"install-no-version":  {NewInstall, "in this version", command.ExitError, "install web --in-cluster --operator-version ^2"},
		"rollback-none":       {NewRollback, "there is a run to go back to", command.ExitError, "rollback --instance site"},
		"rollback-revision":   {NewRollback, "this run, too", command.ExitError, "rollback --instance site --to-revision 7"},
		"upgrade-other":       {NewUpgrade, "to another operator is no upgrade", command.ExitError, "upgrade HELLO --instance site"},
		"uninstall-version":   {NewUninstallVersion, "Instances use it", command.ExitError, "uninstall-version web-1.27-1.0.0"},
		"uninstall-dry-run":   {NewUninstallVersion, "which are listed, and hold it up", command.ExitFailed, "uninstall-version web-1.27-1.0.0 --dry-run"},
		"uninstall-none":      {NewUninstallVersion, "the version exists", command.ExitError, "uninstall-version none"},
	} {
		t.Run(name, func(t *testing.T) {
			commandtest.ExpectGolden(t, tc.command, tc.code, name, tc.reason, argsOf(tc.line)...)
		})
	}
}

// TestPreview checks what an upgrade would delete.
func TestPreview(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: web\noperatorVersion: 2.0.0\nappVersion: \"1.27\"\ntasks:\n" +
			"- {name: a, kind: Apply, spec: {resources: [a.yaml]}}\n" +
			"plans:\n  deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [a]}]}]}\n",
		"params.yaml":      "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: VALUE, default: a}\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-apply-0'}\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	version := web("1.0.0")
	server := onServer(t, version, site(version), &corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "site-old")})
	denied := false
	server.Before(func(r apitest.Request) (any, error) {
		if r.Kind != "LocalSubjectAccessReview" {
			return nil, nil
		}
		return &authorizationv1.LocalSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: !denied}}, nil
	})
	out, _ := commandtest.Expect(t, NewUpgrade, 0, "", "upgrade", dir, "--instance", "site", "--dry-run")
	commandtest.Golden(t, filepath.Join("testdata", "upgrade", "dry-run.txt"), out, "what is not named is deleted, but for data")
	for _, tc := range []struct {
		reason, flags string
		denied        bool
		code          int
		err           string
	}{
		{"nothing of it is named", "--dry-run --fail-on data,restart,rights", false, 0, ""},
		{"the account lacks rights", "--dry-run --fail-on data,rights", true, command.ExitFailed, "has what --fail-on names: rights"},
		{"the flag does not name rights", "--dry-run --fail-on data", true, 0, ""},
		{"all is known", "--dry-run --fail-on unknown", false, 0, ""},
		{"a concern that does not exist", "--dry-run --fail-on money", false, command.ExitUsage, `--fail-on "money": use rights, restart, delete, data, unknown`},
		{"without a preview", "--fail-on data", false, command.ExitUsage, "--fail-on requires --dry-run"},
	} {
		denied = tc.denied
		args := append([]string{"upgrade", dir, "--instance", "site"}, strings.Fields(tc.flags)...)
		commandtest.Expect(t, NewUpgrade, tc.code, tc.err, args...)
	}
	for _, request := range server.Requests() {
		if strings.HasSuffix(request, "(dry run)") || strings.Contains(request, "AccessReview") { // a review is a question
			continue
		}
		for _, verb := range []string{"create ", "patch ", "apply ", "delete ", "update "} {
			if len(request) > len(verb) && request[:len(verb)] == verb {
				t.Errorf("a dry run changes nothing: %s", request)
			}
		}
	}
}

// TestWrites checks what commands write.
func TestWrites(t *testing.T) {
	version := web("1.0.0")
	server := onServer(t, version, site(version), &corev1.Namespace{ObjectMeta: gen.Meta("", "lab")},
		&corev1.ServiceAccount{ObjectMeta: gen.Meta("lab", "kudo")})
	stored := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}

	out, _ := commandtest.Expect(t, NewUpdate, 0, "", "update", "--instance", "site", "-p", "VALUE=c")
	if server.Read(stored); out != "instance lab/site updated\n" || stored.Spec.Parameters["VALUE"] != "c" {
		t.Errorf("update sets a parameter: %s%v", out, stored.Spec.Parameters)
	}
	out, _ = commandtest.Expect(t, NewUpdate, 0, "", "update", "--instance", "site", "--unset", "VALUE", "--parameters-from", "cm/values")
	stored = &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	server.Read(stored)
	if from := stored.Spec.ParametersFrom; out == "" || len(stored.Spec.Parameters) > 0 || len(from) != 1 || from[0].Kind != "ConfigMap" {
		t.Errorf("update takes one back, and names sources: %s%+v", out, stored.Spec)
	}
	out, _ = commandtest.Expect(t, NewPlan, 0, "", "plan", "trigger", "--instance", "site", "--name", "backup")
	server.Read(stored)
	if run := stored.Spec.PlanExecution; out != "instance lab/site triggered: plan backup\n" || run.PlanName != "backup" || run.UID == "" {
		t.Errorf("a trigger names the plan, and a run: %s%+v", out, stored.Spec.PlanExecution)
	}

	failed := site(version)
	failed.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.FatalError, UID: "run-2"}
	server.Put(failed)
	out, _ = commandtest.Expect(t, NewPlan, 0, "", "plan", "retry", "--instance", "site")
	server.Read(stored)
	if out != "plan deploy of instance lab/site is being retried\n" || stored.Annotations[v1beta1.RetryAnnotation] != "run-2" {
		t.Errorf("a retry names the run: %s%v", out, stored.Annotations)
	}
	running := site(version)
	running.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.InProgress, UID: types.UID("run-3")}
	server.Put(running)
	out, _ = commandtest.Expect(t, NewPlan, 0, "", "plan", "cancel", "--instance", "site")
	server.Read(stored)
	if out != "plan deploy of instance lab/site is being cancelled\n" || stored.Annotations[v1beta1.CancelAnnotation] != "run-3" {
		t.Errorf("so does a cancel: %s%v", out, stored.Annotations)
	}

	out, _ = commandtest.Expect(t, NewInstall, 0, "", "install", "web", "--in-cluster", "--instance", "second", "-p", "VALUE=x", "--adopt")
	second := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "second")}
	server.Read(second)
	adopts := second.Annotations[v1beta1.AdoptAnnotation] == "true"
	if out != "instance lab/second created\n" || second.Spec.OperatorVersion.Name != version.Name || !adopts {
		t.Errorf("an Instance of what is installed: %s%+v", out, second)
	}
	out, _ = commandtest.Expect(t, NewInstall, 0, "", "install", hello)
	const created = "operator lab/hello created\noperatorversion lab/hello-%[1]s created\ninstance lab/hello-instance created\n"
	var operator, app string
	if n, err := fmt.Sscanf(out, "operator lab/%s created\noperatorversion lab/%s created\n", &operator, &app); n != 2 || err != nil {
		t.Fatalf("a package with an Instance: %v\n%s", err, out)
	}
	if want := fmt.Sprintf(created, app[len("hello-"):]); out != want {
		t.Errorf("-want +got:\n%s%s", want, out)
	}
	out, _ = commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "--instance", "second")
	if server.Get(second) != nil || out == "" {
		t.Errorf("the Instance is deleted: %s", out)
	}
}

// TestUninstallNamesHolders checks that an uninstall names who else holds the cluster-scoped and shared objects that stay, and that the command
// to delete what is not needed leaves these out (P13).
func TestUninstallNamesHolders(t *testing.T) {
	version := web("1.0.0")
	instance := site(version)
	instance.Status.Resources = nil
	role := func(name string, managers ...string) *rbacv1.ClusterRole {
		out := &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", name)}
		for _, manager := range managers {
			out.ManagedFields = append(out.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
		}
		return out
	}
	for _, name := range []string{"absent", "common", "own"} {
		instance.Status.Resources = append(instance.Status.Resources, v1beta1.ResourceStatus{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name})
	}
	instance.Status.Resources = append(instance.Status.Resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "lab", Name: "shared"})
	server := onServer(t, version, instance, role("common", "kudo/lab/site", "kudo/team-b/site"), role("own", "kudo/lab/site"))
	uid := server.Get(instance).GetUID()
	object := &corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "shared")}
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"},
		{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "site", UID: uid}}
	server.Put(object)
	out, _ := commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "site")
	want := "clusterrole common stays, since it is cluster-scoped and others may use it; Instance team-b/site holds it, too\n" +
		"clusterrole own stays, since it is cluster-scoped and others may use it\n" +
		"configmap shared stays, since ConfigMap other holds it, too\ninstance lab/site deleted\n" +
		"delete what is not needed any more: kubectl delete -n lab clusterrole.rbac.authorization.k8s.io/own\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}
