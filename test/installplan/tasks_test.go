package installplan

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("An install plan may have tasks of all kinds", func() {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	child := gen.Version(ns, "child-1.0.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	child.Spec.Operator.Name, child.Spec.Version = "child", "1.0.0"
	env.Must(t, suite.Create(ctx, child))
	ov := gen.Version(ns, "tasks", gen.Param("SWITCH", "true", ""), gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"),
		gen.Template("job.yaml", `apiVersion: batch/v1
kind: Job
metadata: {name: prepare}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: ["true"]}]}}}
`),
		gen.Template("banner.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: banner}\n"),
		gen.Template("child.yaml", "VALUE: b\n"),
		gen.Apply("job", "job.yaml"), gen.Task("clean", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"job.yaml"}}),
		gen.Task("banner", v1beta1.ToggleTask, v1beta1.TaskSpec{Resources: []string{"banner.yaml"}, Parameter: "SWITCH"}),
		gen.Task("child", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "child", OperatorVersion: "1.0.0", InstanceName: "shared", ParameterFile: "child.yaml", EnablingParameter: "SWITCH"}),
		gen.Serial("install", "job", "clean", "banner", "child"), gen.InstallPlan("install"))
	job := &batchv1.Job{ObjectMeta: gen.Meta(ns, "prepare")}
	banner, kid := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "banner")}, &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "shared")}
	made := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "shared-cm-0")}
	want := func(when string, there bool) {
		t.Helper()
		env.Eventually(t, when, func() string { // the dependency's objects are collected
			for _, obj := range []client.Object{banner, kid, made} {
				if exists(t, obj) != there {
					return fmt.Sprintf("%s is there: %v", obj.GetName(), !there)
				}
			}
			return ""
		})
		if exists(t, job) {
			t.Errorf("%s: the Job is there, which the plan deletes", when)
		}
	}
	complete(t, install(t, ov))
	want("installed", true)
	if made.Data["key"] != "b" || len(owners(kid)) != 1 || len(owners(banner)) != 1 {
		t.Errorf("the dependency has %v, and belongs to %v; the banner to %v", made.Data, owners(kid), owners(banner))
	}
	env.Consistently(t, 3*time.Second, func() { // more than it takes to restore what is missing
		if now := ended(t, ov, 1); now.Status.Revision != 1 {
			t.Errorf("nothing is missing, and the plan ran again: %+v", now.Status)
		}
	})
	toggle := func(value string) {
		edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallParameters = map[string]string{"SWITCH": value} })
	}
	toggle("false")
	complete(t, ended(t, ov, 2))
	want("switched off", false)
	toggle("true")
	complete(t, ended(t, ov, 3))
	want("switched on", true)
	uninstall(t, ov)
	released(t, ov)
	want("uninstalled", false)
})
