package integration

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// TestEnablingParameter: a parameter switches a dependency on and off; switched off, its cleanup plan runs.
func TestEnablingParameter(t *testing.T) {
	ns := namespace(t)
	child := gen.Version(ns, "store-1.0.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"),
		gen.Task("drop", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"cm-0.yaml"}}), gen.Serial("cleanup", "drop"))
	must(t, cluster.Create(t.Context(), child))
	parent := gen.Version(ns, "app", gen.Param("STORE", "false", ""), func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[0].Type = v1beta1.BooleanType },
		gen.Task("store", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "store", OperatorVersion: "1.0.0", EnablingParameter: "STORE"}), gen.Serial("deploy", "store"))
	status(t, deploy(t, parent, "i", nil), "deploy", v1beta1.Complete)
	key := types.NamespacedName{Namespace: ns, Name: "i-store"}
	if err := cluster.Get(t.Context(), key, &v1beta1.Instance{}); !apierrors.IsNotFound(err) {
		t.Fatalf("it is switched off: %v", err)
	}
	set := func(value string, run int64) {
		t.Helper()
		must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"STORE": value} }))
		status(t, await(t, ns, "i", env.Ended("deploy", run)), "deploy", v1beta1.Complete)
	}
	set("true", 2)
	status(t, get(t, &v1beta1.Instance{}, ns, "i-store"), "deploy", v1beta1.Complete)
	set("false", 3)
	if err := cluster.Get(t.Context(), key, &v1beta1.Instance{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is switched off again: %v", err)
	}
	hasEvent(t, ns, "Execution of plan cleanup finished with status COMPLETE")
}
