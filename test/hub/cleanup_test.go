package hub

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// checkCleanup checks C38: the plan cleanup of a copy runs with the version and the values that the copy has had, though the cluster has
// lost the OperatorVersion and the source of the values before.
func checkCleanup(t *testing.T, p *planes) {
	ns := p.newNamespace(t)
	text := `apiVersion: v1
kind: Secret
metadata: {name: "{{ .Name }}-%s"}
stringData: {password: "{{ .Params.PASSWORD }}"}
`
	ov := gen.Version(ns, "book-1.0.0", gen.Required("PASSWORD"), gen.Template("app.yaml", fmt.Sprintf(text, "app")),
		gen.Template("end.yaml", fmt.Sprintf(text, "end")), gen.Apply("app", "app.yaml"), gen.Apply("end", "end.yaml"),
		gen.Serial(v1beta1.DeployPlan, "app"), gen.Serial(v1beta1.CleanupPlan, "end"))
	login := &corev1.Secret{ObjectMeta: gen.Meta(ns, "login"), StringData: map[string]string{"PASSWORD": "first"}}
	for _, obj := range []client.Object{ov, login} {
		env.Must(t, p.hub.Create(t.Context(), obj))
	}
	i := gen.Instance("book", ov, nil)
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "login"}}
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	env.Must(t, p.hub.Create(t.Context(), i))
	if p.grant != nil {
		if got := await(t, p, i, metav1.ConditionFalse, v1beta1.ReasonWaitingForParameters); len(got.Status.Members) > 1 {
			t.Errorf("members %+v", got.Status.Members)
		}
		p.grant(t, ns)
	}
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)

	m1 := p.members["m1"]
	// The object goes with the copy, so that only a watch sees it for certain.
	events, err := m1.Watch(t.Context(), &corev1.SecretList{}, client.InNamespace(ns), client.MatchingFields{"metadata.name": "book-end"})
	env.Must(t, err)
	defer events.Stop()
	for _, obj := range []client.Object{&corev1.Secret{ObjectMeta: gen.Meta(ns, "login")}, &v1beta1.OperatorVersion{ObjectMeta: gen.Meta(ns, ov.Name)}} {
		env.Must(t, m1.Delete(t.Context(), obj))
	}
	env.Must(t, p.hub.Delete(t.Context(), i))
	for limit, written := time.After(env.DefaultTimeout), false; !written; {
		select {
		case event := <-events.ResultChan():
			if secret, is := event.Object.(*corev1.Secret); is && event.Type == watch.Added {
				if written = true; string(secret.Data["password"]) != "first" {
					t.Errorf("the plan cleanup wrote %q", secret.Data["password"])
				}
			}
		case <-limit:
			t.Fatalf("the plan cleanup has written nothing; the copy is %+v", env.Read(t, m1, &v1beta1.Instance{}, ns, "book").Status)
		}
	}
	wait(t, "no copy is left", func() error { return absent(m1, i) })
	wait(t, "the hub has no Instance any more", func() error { return absent(p.hub, i) })
}
