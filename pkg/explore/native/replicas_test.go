package native

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

func TestReplicas(t *testing.T) {
	for _, row := range []struct {
		reason, object string
		want           int32
		silent         bool
	}{
		{reason: "one by default", object: "{apiVersion: apps/v1, kind: Deployment}", want: 1},
		{reason: "zero is not the default", object: "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0}}", want: 0},
		{reason: "older groups", object: "{apiVersion: extensions/v1beta1, kind: ReplicaSet, spec: {replicas: 4}}", want: 4},
		{reason: "a Job's pods at a time", object: "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3, completions: 5}}", want: 3},
		{reason: "more than its completions have no effect", object: "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3, completions: 2}}", want: 2},
		{reason: "a CronJob counts as one run", object: "{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {parallelism: 3}}}}", want: 3},
		{reason: "a suspended CronJob runs nothing", object: "{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true, jobTemplate: {spec: {parallelism: 3}}}}", want: 0},
		{reason: "a Pod is one", object: "{apiVersion: v1, kind: Pod}", want: 1},
		{reason: "the number of nodes is not known", object: "{apiVersion: apps/v1, kind: DaemonSet}", silent: true},
		{reason: "but its controller", object: "{apiVersion: apps/v1, kind: DaemonSet, status: {desiredNumberScheduled: 6}}", want: 6},
		{reason: "no pods", object: "{apiVersion: v1, kind: ConfigMap}", silent: true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			got, known, err := layer().Explore(t.Context(), explore.Request{Operation: explore.Replica, Object: parse(t, row.object)})
			if err != nil || known == row.silent || got.Replicas != row.want {
				t.Errorf("got %d (known %v, error %v), want %d", got.Replicas, known, err, row.want)
			}
		})
	}
}

func TestRequirementsOfTheTemplate(t *testing.T) {
	object := parse(t, "apiVersion: batch/v1\nkind: CronJob\nmetadata: {namespace: ns}\nspec:\n  jobTemplate:\n    spec:\n"+indent(podTemplate, 6))
	got, _, err := layer().Explore(t.Context(), explore.Request{Operation: explore.Replica, Object: object})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"nodeClaim":{"nodeSelector":{"disk":"ssd"}},"resourceRequest":{"cpu":"100m","memory":"64Mi"},"namespace":"ns","priorityClassName":"high"}`
	if diff := cmp.Diff(compact(t, want), compact(t, exploretest.Text(t, got.Requirements))); diff != "" {
		t.Errorf("requests, a limit where there is no request, the node (-want +got):\n%s", diff)
	}
}

func TestReviseReplica(t *testing.T) {
	for _, row := range []struct {
		reason, object string
		count          int32
		want           string
	}{
		{"a workload", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}", 0, "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0}}"},
		{"a workload without a number", "{apiVersion: apps/v1, kind: StatefulSet}", 2, "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2}}"},
		{"a Job", "{apiVersion: batch/v1, kind: Job, spec: {completions: 9}}", 0, "{apiVersion: batch/v1, kind: Job, spec: {completions: 9, parallelism: 0}}"},
		{"a CronJob of none is suspended", "{apiVersion: batch/v1, kind: CronJob, spec: {}}", 0, "{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true}}"},
		{"a CronJob", "{apiVersion: batch/v1, kind: CronJob, spec: {}}", 2, "{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {parallelism: 2}}}}"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			got, known, err := layer().Explore(t.Context(), explore.Request{Operation: explore.ReplicaRevising, Object: parse(t, row.object), Replicas: row.count})
			if err != nil || !known {
				t.Fatalf("known %v, error %v", known, err)
			}
			if diff := cmp.Diff(parse(t, row.want).Object, got.Object.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDependencies(t *testing.T) {
	const spec = `
serviceAccountName: runner
imagePullSecrets: [{name: registry}]
initContainers: [{name: i, env: [{name: A, valueFrom: {secretKeyRef: {name: key, key: k}}}]}]
containers:
- name: c
  envFrom: [{configMapRef: {name: env}}, {secretRef: {name: maybe, optional: true}}]
  env: [{name: B, valueFrom: {configMapKeyRef: {name: maybe, key: k, optional: true}}}, {name: C, value: x}]
volumes:
- {name: a, configMap: {name: env}}
- {name: b, secret: {secretName: maybe, optional: true}}
- {name: c, persistentVolumeClaim: {claimName: disk}}
- {name: d, projected: {sources: [{secret: {name: projected}}, {configMap: {name: maybe, optional: true}}, {serviceAccountToken: {path: t}}]}}
- {name: e, csi: {driver: d, nodePublishSecretRef: {name: csi}}}`
	want := []string{"v1 ConfigMap ns/env", "v1 PersistentVolumeClaim ns/disk", "v1 Secret ns/csi", "v1 Secret ns/key", "v1 Secret ns/projected", "v1 Secret ns/registry", "v1 ServiceAccount ns/runner"}
	for kind, at := range map[string]string{
		"v1\nkind: Pod\nspec:": "", "v1\nkind: PodTemplate\ntemplate:": "spec", "v1\nkind: ReplicationController\nspec:": "template.spec",
		"apps/v1\nkind: Deployment\nspec:": "template.spec", "apps/v1\nkind: StatefulSet\nspec:": "template.spec", "apps/v1\nkind: DaemonSet\nspec:": "template.spec",
		"apps/v1\nkind: ReplicaSet\nspec:": "template.spec", "batch/v1\nkind: Job\nspec:": "template.spec", "batch/v1\nkind: CronJob\nspec:": "jobTemplate.spec.template.spec",
	} {
		depends(t, "what a pod cannot start without, of "+kind, "apiVersion: "+nest(kind, at, spec)+"\nmetadata: {namespace: ns}", want)
	}
	depends(t, "claims of the set's own templates are not waited for",
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {volumes: [
			{name: data, persistentVolumeClaim: {claimName: data}}, {name: other, persistentVolumeClaim: {claimName: other}}]}}}}`, []string{"v1 PersistentVolumeClaim ns/other"})
	depends(t, "a claim that another volume of the set names, too, is waited for",
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {volumes: [
			{name: data, persistentVolumeClaim: {claimName: shared}}, {name: other, persistentVolumeClaim: {claimName: shared}}]}}}}`, []string{"v1 PersistentVolumeClaim ns/shared"})
	depends(t, "a claim template replaces a volume of its name, whatever that holds",
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {volumes: [
			{name: data, configMap: {name: replaced}}, {name: other, configMap: {name: env}}]}}}}`, []string{"v1 ConfigMap ns/env"})
	depends(t, "every namespace has the default account", "{apiVersion: v1, kind: Pod, metadata: {namespace: ns}, spec: {serviceAccountName: default}}", nil)
	depends(t, "certificates and backends of an Ingress",
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: ns}, spec: {tls: [{secretName: tls}, {hosts: [a]}], defaultBackend: {service: {name: main}},
			rules: [{host: a}, {http: {paths: [{backend: {service: {name: web}}}, {backend: {service: {name: main}}}]}}]}}`, []string{"v1 Secret ns/tls", "v1 Service ns/main", "v1 Service ns/web"})
	depends(t, "backends of an old Ingress",
		"{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {namespace: ns}, spec: {backend: {serviceName: main}, rules: [{http: {paths: [{backend: {serviceName: web}}]}}]}}",
		[]string{"v1 Service ns/main", "v1 Service ns/web"})
	depends(t, "the target of an autoscaler",
		"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: ns}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", []string{"apps/v1 Deployment ns/web"})
}

func depends(t *testing.T, reason, object string, want []string) {
	t.Helper()
	t.Run(reason, func(t *testing.T) {
		got, known, err := layer().Explore(t.Context(), explore.Request{Operation: explore.Dependencies, Object: parse(t, object)})
		if err != nil || !known {
			t.Fatalf("known %v, error %v", known, err)
		}
		if diff := cmp.Diff(want, lines(got.Dependencies)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func lines(dependencies []v1alpha1.DependentObjectReference) []string {
	var all []string
	for _, d := range dependencies {
		all = append(all, d.APIVersion+" "+d.Kind+" "+d.Namespace+"/"+d.Name)
	}
	return all
}
