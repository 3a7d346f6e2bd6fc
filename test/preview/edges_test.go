package preview

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// TestLeftClaims: an installation and its preview say that claims of an earlier Instance are used again.
func TestLeftClaims(t *testing.T) {
	t.Parallel()
	ns, b := suite.NewNamespace(t), written()
	b.files["templates/store.yaml"] += "  volumeClaimTemplates:\n  - metadata: {name: data}\n" +
		"    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	install := []string{"install", b.write(t, b.files, ns), "--instance", "i", "-n", ns, "-p", b.parameters[0]}
	suite.MustKudo(t, 0, append(install, "--wait")...)
	env.Contains(t, suite.MustKudo(t, 0, "uninstall", "i", "-n", ns, "--dry-run"), "data-i-store-0", preview.StaysUnowned)
	suite.MustKudo(t, 0, "uninstall", "i", "-n", ns, "--wait")
	env.Contains(t, suite.MustKudo(t, 0, append(install, "--dry-run")...),
		"PersistentVolumeClaim "+ns+"/data-i-store-0 exists: StatefulSet i-store would use it, with the data that it holds")
	env.Contains(t, suite.MustKudo(t, 0, install...), "an earlier Instance of the name has left PersistentVolumeClaims: data-i-store-0")
}

// TestForeignObject: where an object of another owner has the name of one of the second step, the preview of an installation names the object and
// the step before anything is written, and ends as the installation does.
func TestForeignObject(t *testing.T) {
	t.Parallel()
	ns, b := suite.NewNamespace(t), written()
	labels := map[string]string{"app": "theirs"}
	env.Must(t, suite.Create(t.Context(), &appsv1.Deployment{ObjectMeta: gen.Meta(ns, "i"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "theirs:1"}}}},
	}}))
	env.Eventually(t, "the annotation of the Deployment controller", env.Condition(func() bool {
		return env.Read(t, suite, &appsv1.Deployment{}, ns, "i").Annotations["deployment.kubernetes.io/revision"] != ""
	}))
	install := []string{"install", b.write(t, b.files, ns), "--instance", "i", "-n", ns, "-p", b.parameters[0]}
	o := act(t, ns, install)
	if f := o.preview.Runs[0].Failure; f == nil || f.Step != "main/second" {
		t.Errorf("the preview does not name the step: %+v\n%s", f, o.texts)
	}
	o.compare(t)
}

// TestManyReplicas: the preview of an edit that asks for a million pods says how many more there would be.
func TestManyReplicas(t *testing.T) {
	t.Parallel()
	ns, b := suite.NewNamespace(t), written()
	b.files["templates/web.yaml"] = replaceOnce(t, b.files["templates/web.yaml"], "replicas: 2", "replicas: {{ .Params.REPLICAS }}")
	b.files["params.yaml"] += "- {name: REPLICAS, default: '2'}\n"
	suite.MustKudo(t, 0, "install", b.write(t, b.files, ns), "--instance", "i", "-n", ns, "-p", b.parameters[0], "--wait")
	out := suite.MustKudo(t, 0, "update", "i", "-n", ns, "-p", "REPLICAS=1000000", "--dry-run")
	env.Contains(t, out, ".spec.replicas: 2 -> 1000000", "pods 3 -> 1000001", "more than 20 times as much of pods")
	d := env.Read(t, suite, &appsv1.Deployment{}, ns, "i")
	if *d.Spec.Replicas != 2 {
		t.Errorf("the preview has scaled to %d", *d.Spec.Replicas)
	}
}
