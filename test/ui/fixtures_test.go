package ui

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/gen"
)

// now is the time of the objects below, as the browser shows them.
var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func microAgo(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(-d))) }

// pages are those of the objects below.
var pages = []string{"/instances", "/instances?q=web&state=ready", "/instances?q=none", "/instances/default/site", "/instances/default/web", "/instances/team-a/book", "/instances/default/absent", "/instances/default/web/change", "/instances/team-a/book/drift",
	"/catalog", "/catalog?name=none", "/catalog/package?repository=examples&name=web", "/versions", "/versions/default/web-1.1.0", "/shared", "/clusters", "/settings"}

// ready returns an Instance that is ready, but for what change changes.
func ready(namespace, name, version string, change func(*v1beta1.Instance)) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	i.Spec.OperatorVersion.Name = version
	i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: "True", Reason: v1beta1.ReasonResourcesReady, LastTransitionTime: ago(72 * time.Hour)}}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.Complete, Revision: 1, StartedTimestamp: microAgo(72 * time.Hour), FinishedTimestamp: microAgo(71*time.Hour + 59*time.Minute)}}
	i.Status.AggregatedStatus.Status = v1beta1.Complete
	if change != nil {
		change(i)
	}
	return i
}

// failed makes the run of an Instance fail, with a culprit.
func failed(i *v1beta1.Instance) {
	code := int32(7)
	i.Status.Conditions[0].Status, i.Status.Conditions[0].Reason, i.Status.Conditions[0].Message = "False", v1beta1.ReasonPlanInFatalError, "plan report failed"
	i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1beta1.StalledCondition, Status: "True", Reason: v1beta1.ReasonPlanInFatalError, LastTransitionTime: ago(4 * time.Minute)})
	i.Status.PlanStatus["report"] = v1beta1.PlanStatus{Name: "report", Status: v1beta1.FatalError, Revision: 2, Message: "task report failed: Job site-report: 2 of 2 pods failed (BackoffLimitExceeded)",
		StartedTimestamp: microAgo(5 * time.Minute), FinishedTimestamp: microAgo(4 * time.Minute), Phases: []v1beta1.PhaseStatus{{Name: "report", Status: v1beta1.FatalError, Steps: []v1beta1.StepStatus{
			{Name: "prepare", Status: v1beta1.Complete, StartedTimestamp: microAgo(5 * time.Minute), FinishedTimestamp: microAgo(5*time.Minute - time.Second)},
			{Name: "report", Status: v1beta1.FatalError, StartedTimestamp: microAgo(5*time.Minute - time.Second), FinishedTimestamp: microAgo(4 * time.Minute), Tasks: []v1beta1.TaskStatus{{Name: "report", Status: v1beta1.FatalError,
				Total: 1, Message: "Job site-report: 2 of 2 pods failed (BackoffLimitExceeded)", Culprit: &v1beta1.Culprit{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: "site-report", Pod: "site-report-g5mk5",
					Container: "report", ExitCode: &code, Reason: "Error", Since: new(ago(4 * time.Minute))}}}}}}}}
}

// objects are what the pictures of the documents show.
func objects() []client.Object {
	web := ready("default", "web", "web-1.1.0", func(i *v1beta1.Instance) {
		i.Spec.Parameters = map[string]string{"REPLICAS": "2", "PASSWORD": "s3cr3t-inline"}
		i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: "default/web-1.1.0", Revision: 8}
		i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Status: "False", Reason: v1beta1.ReasonPlanInProgress, Message: "plan update runs", LastTransitionTime: ago(40 * time.Second)}}
		i.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.InProgress, ActivePlanName: "update"}
		i.Status.PlanStatus["update"] = v1beta1.PlanStatus{Name: "update", Status: v1beta1.InProgress, Revision: 8, StartedTimestamp: microAgo(40 * time.Second), Phases: []v1beta1.PhaseStatus{{Name: "web",
			Status: v1beta1.InProgress, Steps: []v1beta1.StepStatus{{Name: "server", Status: v1beta1.InProgress, StartedTimestamp: microAgo(40 * time.Second), Tasks: []v1beta1.TaskStatus{{Name: "server",
				Status: v1beta1.InProgress, Ready: 1, Total: 2, Message: "Deployment web: 1 of 2 replicas updated", Culprit: &v1beta1.Culprit{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web",
					Owner: "ReplicaSet web-858b5", Pod: "web-858b5-tc58s", Container: "web", Reason: "ImagePullBackOff", Message: "image registry.example.org/web:1.1 not found", Since: new(ago(30 * time.Second))}}}},
				{Name: "service", Status: v1beta1.Pending}}}}}
		i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "backup", Cause: "requested", RequestedBy: "ann with kubectl kudo plan trigger"}}
		i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "web-page"},
			{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "web-login"}}
	})
	version := func(name, number string, change func(*v1beta1.OperatorVersion)) *v1beta1.OperatorVersion {
		ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
		ov.Spec.Operator.Name, ov.Spec.Version, ov.Spec.AppVersion = "web", number, "1.27"
		ov.Spec.Parameters = []v1beta1.Parameter{{Name: "REPLICAS", Default: new("1"), Description: "How many pods serve"}, {Name: "PASSWORD", Sensitive: true, Description: "Password of the page"}}
		ov.Spec.Plans = map[string]v1beta1.Plan{"deploy": {}, "update": {}, "backup": {}}
		if change != nil {
			change(ov)
		}
		return ov
	}
	run := func(revision int64, plan, parameters, cause string, at time.Duration) *appsv1.ControllerRevision {
		started := now.Add(-at).Format("2006-01-02T15:04:05.000000Z")
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: history.Name("web", revision), Labels: map[string]string{v1beta1.InstanceLabel: "web"},
			Annotations:     map[string]string{"kudo.dev/outcome": fmt.Sprintf(`{"status":"COMPLETE","finished":%q}`, now.Add(3*time.Second-at).Format("2006-01-02T15:04:05.000000Z"))},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "web", UID: "uid-web", Controller: new(true)}}}, Revision: revision}
		r.Data = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"plan":%q,"parameters":%s,"cause":%q,"operatorVersion":"default/web-1.1.0","started":%q}`, plan, parameters, cause, started)}
		return r
	}
	labels := map[string]string{v1beta1.InstanceLabel: "web", v1beta1.HeritageLabel: v1beta1.Heritage}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}}
	installation := func(name string, held ...v1beta1.HeldResource) *v1beta1.Installation {
		i := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "default-" + name}, Spec: v1beta1.InstallationSpec{Subject: v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "default", Name: name}}}
		i.Status.Resources = held
		return i
	}
	crd := v1beta1.HeldResource{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "sites.web.example.org", State: v1beta1.HoldCreated}
	shared := crd
	shared.State = v1beta1.HoldShared
	role := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "site-reader", State: v1beta1.HoldMismatch, Message: "ClusterRole site-reader differs in .rules, which mallory has changed"}
	guestbook := gen.Version("team-a", "guestbook-1.0.0", gen.Template("store.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-store'}\ndata: {redis.conf: appendonly yes}\n"),
		gen.Apply("store", "store.yaml"), gen.Serial("deploy", "store"))
	store := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "book-store", UID: "uid-store", Labels: map[string]string{v1beta1.InstanceLabel: "book", v1beta1.HeritageLabel: v1beta1.Heritage}},
		Data: map[string]string{"redis.conf": "appendonly no"}}
	return []client.Object{
		web, guestbook, store, ready("default", "site", "web-1.0.0", failed), ready("default", "pg", "postgres-1.0.0", nil), ready("team-a", "shop", "web-1.0.0", nil),
		ready("team-a", "book", "guestbook-1.0.0", func(i *v1beta1.Instance) {
			i.Status.Drift = []v1beta1.ObjectDrift{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "book-store", Fields: []string{".data.redis.conf"}, Writer: "mallory",
				Message: "ConfigMap team-a/book-store: .data.redis.conf was changed by mallory", Since: new(ago(2 * time.Hour))}}
			i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "book-store", UID: "uid-store"}}
		}),
		version("web-1.0.0", "1.0.0", nil), version("web-1.1.0", "1.1.0", func(ov *v1beta1.OperatorVersion) {
			ov.Spec.InstallPlan = "install"
			ov.Spec.Plans["install"] = v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "definitions", Steps: []v1beta1.Step{{Name: "apply"}}}}}
			ov.Status.Conditions = []metav1.Condition{{Type: v1beta1.InstalledCondition, Status: "True", Reason: v1beta1.ReasonInstallPlanComplete, LastTransitionTime: ago(48 * time.Hour)}}
			ov.Status.PlanStatus = map[string]v1beta1.PlanStatus{"install": {Name: "install", Status: v1beta1.Complete, Revision: 1, StartedTimestamp: microAgo(48 * time.Hour), FinishedTimestamp: microAgo(48*time.Hour - time.Second),
				Phases: []v1beta1.PhaseStatus{{Name: "definitions", Status: v1beta1.Complete, Steps: []v1beta1.StepStatus{{Name: "apply", Status: v1beta1.Complete}}}}}}
		}),
		installation("web-1.0.0", crd), installation("web-1.1.0", shared, role),
		run(6, "update", `{"REPLICAS":"60","PASSWORD":"x"}`, "parameters changed: REPLICAS", 3*time.Hour), run(7, "update", `{"REPLICAS":"2","PASSWORD":"x"}`, "set back to run 5", 2*time.Hour),
		run(8, "update", `{"REPLICAS":"2","PASSWORD":"s3cr3t-inline"}`, "parameters changed: PASSWORD", 40*time.Second),
		deployment, &corev1.ConfigMap{ObjectMeta: meta("web-page"), Data: map[string]string{"k": "s3cr3t-of-a-secret"}},
		&corev1.Secret{ObjectMeta: meta("web-login"), Data: map[string][]byte{"k": []byte("s3cr3t-of-a-secret")}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Instance", Name: "web", UID: "uid-web"}, Type: "Normal", Reason: "PlanStarted",
			Message: "plan update started: parameters changed: PASSWORD", LastTimestamp: ago(40 * time.Second), Count: 1},
	}
}
