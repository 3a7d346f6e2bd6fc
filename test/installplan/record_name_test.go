package installplan

import (
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// foreign makes a ControllerRevision that kudo did not make.
func foreign(t testing.TB, namespace, name string) *appsv1.ControllerRevision {
	t.Helper()
	r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta(namespace, name), Revision: 1, Data: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}
	env.Must(t, suite.Create(ctx, r))
	return r
}

// blocked wants a condition of an OperatorVersion whose install plan cannot be recorded, its event, and PENDING.
func blocked(t testing.TB, ov *v1beta1.OperatorVersion, kind string, status metav1.ConditionStatus, cause string) {
	t.Helper()
	message := "install plan install cannot be started: ControllerRevision " + ov.Namespace + "/" + cause
	env.Eventually(t, "the condition "+kind+" of "+ov.Name, func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ov.Namespace, ov.Name)
		c := meta.FindStatusCondition(now.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != v1beta1.ReasonRecordNameTaken || c.Message != message {
			return fmt.Sprintf("%+v", now.Status.Conditions)
		}
		if a := now.Status.AggregatedStatus; a.Status != v1beta1.Pending || a.Message != message {
			return fmt.Sprintf("%+v", a)
		}
		return ""
	})
	evented(t, ov, "Warning RecordNameTaken: "+message)
}

var _ = It("An install plan waits while a ControllerRevision that is not the OperatorVersion's has the name of its record, and touches nothing", Label("record-name-taken"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	const taken = " exists and is no record of kudo, so that the run cannot be recorded under that name: it was not changed. Delete it"

	t.Log("the first run, and an Instance that waits for it")
	theirs := foreign(t, ns, "fleet-install-1")
	ov := f.version(ns, "fleet")
	env.Must(t, suite.Create(ctx, ov))
	blocked(t, ov, v1beta1.InstalledCondition, metav1.ConditionFalse, theirs.Name+taken)
	env.Must(t, suite.Create(ctx, gen.Instance("user", ov, nil)))
	_, err := suite.Await(ctx, ns, "user", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		return i.Status.AggregatedStatus.Message == `waits for the install plan "install" of OperatorVersion `+ns+"/fleet (PENDING: install plan install cannot be started: ControllerRevision "+ns+"/"+theirs.Name+taken+")"
	})
	env.Must(t, err)
	if now := env.Read(t, suite, &appsv1.ControllerRevision{}, ns, theirs.Name); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the ControllerRevision was changed: %+v", now)
	}
	env.Must(t, suite.Delete(ctx, theirs))
	complete(t, ended(t, ov, 1))
	_, err = suite.Await(ctx, ns, "user", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)

	t.Log("a later run: what is installed stays")
	theirs = foreign(t, ns, "fleet-install-2")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"installParameters":{"VERB":"list"}}}`))
	env.Must(t, suite.Patch(ctx, ov, patch))
	blocked(t, ov, v1beta1.StalledCondition, metav1.ConditionTrue, theirs.Name+taken)
	if now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet"); !now.Installed() {
		t.Errorf("what is installed does not count any more: %+v", now.Status.Conditions)
	}
	env.Must(t, suite.Delete(ctx, theirs))
	if now := complete(t, ended(t, ov, 2)); meta.FindStatusCondition(now.Status.Conditions, v1beta1.StalledCondition) != nil {
		t.Errorf("the condition stays: %+v", now.Status.Conditions)
	}
})

var _ = It("An install plan waits while the run of an Instance has the name of its record", Label("record-of-instance"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	plain := gen.Version(ns, "plain", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, plain))
	use(t, plain, ns, "fleet-install")
	ov := f.version(ns, "fleet")
	env.Must(t, suite.Create(ctx, ov))
	blocked(t, ov, v1beta1.InstalledCondition, metav1.ConditionFalse,
		"fleet-install-1 exists and belongs to Instance fleet-install, so that the run cannot be recorded under that name: it was not changed. Delete Instance fleet-install")
	env.Must(t, suite.Delete(ctx, gen.Instance("fleet-install", plain, nil)))
	complete(t, ended(t, ov, 1))
})
