package pipes

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// once is an OperatorVersion whose plans deploy and update make Secret <instance>-key and ConfigMap <instance>-page once, and whose plan
// renew makes the Secret anew.
func once(ns, name string) *v1beta1.OperatorVersion {
	key, index := secret, page
	key.NameSuffix, index.NameSuffix = "key", "page"
	return gen.Version(ns, name, gen.Param("V", "1", "update"), gen.Param("W", "1", "renew"), gen.Template("pod.yaml", pod),
		gen.Task("make", "Pipe", v1beta1.TaskSpec{Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{key, index}, Once: true}),
		gen.Task("renew", "Pipe", v1beta1.TaskSpec{Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{key}}),
		gen.Serial("deploy", "make"), gen.Serial("update", "make"), gen.Serial("renew", "renew"))
}

// run changes a parameter of Instance i, and returns the Instance when the plan that the change triggers has ended. run is the number of the
// run among all of the Instance.
func run(t testing.TB, ns, parameter, plan string, number int64) *v1beta1.Instance {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"`+parameter+`":"`+time.Now().String()+`"}}}`))
	env.Must(t, suite.Patch(context.Background(), &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "i")}, patch))
	i, err := suite.Await(context.Background(), ns, "i", env.DefaultTimeout, env.PlanEnded(plan, number))
	env.Must(t, err)
	return i
}

func complete(t testing.TB, i *v1beta1.Instance, plan string) {
	t.Helper()
	if st := i.Status.PlanStatus[plan]; st.Status != v1beta1.Complete {
		t.Fatalf("%s is %s: %s", plan, st.Status, st.Message)
	}
}

var _ = Describe("A Pipe task with once", Label("G2"), func() {
	const kept = "the Secret is kept, and no Instance owns it"
	check := func(t testing.TB, ns, want string) *corev1.Secret {
		t.Helper()
		s := env.Read(t, suite, &corev1.Secret{}, ns, "i-key")
		if string(s.Data["key.pem"]) != want || !v1beta1.IsKept(s.Annotations) || len(s.OwnerReferences) > 0 {
			t.Fatalf("%s: data %q, annotations %v, owners %v", kept, s.Data, s.Annotations, s.OwnerReferences)
		}
		return s
	}

	It("makes its objects once, also for the next Instance of the name, until another plan renews them", Serial, func(ctx context.Context) {
		t := GinkgoTB()
		ns := restricted(t)
		ov := once(ns, "once")
		complete(t, deploy(t, ov), "deploy")
		first := check(t, ns, "secret")
		made.set("key.pem", "renewed")
		DeferCleanup(made.set, "key.pem", "secret")
		reads := made.count()
		complete(t, run(t, ns, "V", "update", 2), "update")
		if s := check(t, ns, "secret"); s.UID != first.UID || made.count() != reads {
			t.Errorf("the objects were made twice, by %d reads", made.count()-reads)
		}
		complete(t, run(t, ns, "W", "renew", 3), "renew")
		if s := check(t, ns, "renewed"); s.UID != first.UID {
			t.Error("the Secret was replaced")
		}
		reads = made.count()
		env.Must(t, suite.Delete(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "i")}))
		_, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, func(i *v1beta1.Instance) bool { return i == nil })
		env.Must(t, err)
		env.Must(t, suite.Create(ctx, gen.Instance("i", ov, nil)))
		i, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded("deploy", 1))
		env.Must(t, err)
		complete(t, i, "deploy")
		if s := check(t, ns, "renewed"); s.UID != first.UID || made.count() != reads {
			t.Errorf("the next Instance has made the objects anew, by %d reads", made.count()-reads)
		}
		if len(i.Status.Resources) != 2 {
			t.Errorf("the inventory is %v", i.Status.Resources)
		}
	})

	It("makes nothing if some of its objects are lost, and says what to do", func(ctx context.Context) {
		t := GinkgoTB()
		ns := restricted(t)
		complete(t, deploy(t, once(ns, "partial")), "deploy")
		env.Must(t, suite.Delete(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "i-page")}))
		st := run(t, ns, "V", "update", 2).Status.PlanStatus["update"]
		want := `task "make" makes its objects once: Secret ` + ns + `/i-key exists, but ConfigMap ` + ns + `/i-page does not: restore it, or delete the others`
		if st.Status != v1beta1.FatalError || !strings.Contains(st.Message, want) {
			t.Errorf("update is %s: %s", st.Status, st.Message)
		}
		check(t, ns, "secret")
		env.Must(t, suite.Delete(ctx, &corev1.Secret{ObjectMeta: gen.Meta(ns, "i-key")}))
		complete(t, run(t, ns, "V", "update", 3), "update")
		check(t, ns, "secret")
		env.Read(t, suite, &corev1.ConfigMap{}, ns, "i-page")
	})

	It("leaves an object of another client, and fails", func(ctx context.Context) {
		t := GinkgoTB()
		ns := restricted(t)
		env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(ns, "i-key"), StringData: map[string]string{"key.pem": "theirs"}}))
		st := deploy(t, once(ns, "foreign")).Status.PlanStatus["deploy"]
		if st.Status != v1beta1.FatalError || !strings.Contains(st.Message, "Secret "+ns+"/i-key") || !strings.Contains(st.Message, "belongs to another client") {
			t.Errorf("deploy is %s: %s", st.Status, st.Message)
		}
		if s := env.Read(t, suite, &corev1.Secret{}, ns, "i-key"); string(s.Data["key.pem"]) != "theirs" {
			t.Error("the Secret of another client was changed")
		}
	})

	It("is refused in an install plan, whose objects are shared", func(ctx context.Context) {
		t := GinkgoTB()
		ns := restricted(t)
		ov := once(ns, "shared-once")
		ov.Spec.InstallPlan = "renew"
		ov.Spec.Plans["renew"].Phases[0].Steps[0].Tasks = []string{"make"}
		env.Must(t, suite.Create(ctx, ov))
		env.Eventually(t, "the install plan has failed", func() string {
			st := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, ov.Name).Status.PlanStatus["renew"]
			if st.Status != v1beta1.FatalError || !strings.Contains(st.Message, "spec.once cannot be used in an install plan") {
				return string(st.Status) + " " + st.Message
			}
			return ""
		})
	})
})
