package operatorversion

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/trust"
	"kudo.dev/kudo/test/apitest"
)

// fixedKeys are keys that are always there.
type fixedKeys struct{ ring *keyring.Ring }

func (k fixedKeys) Ring(context.Context) (*keyring.Ring, error) { return k.ring, nil }

// fixture is one reconcile of OperatorVersion ns/web on an API server in memory.
type fixture struct {
	*apitest.Server
	*action
	clock    *clocktesting.FakeClock
	recorder *record.FakeRecorder
}

// newFixture stores the OperatorVersion, and its Installation unless that is nil.
func newFixture(t *testing.T, ov *v1beta1.OperatorVersion, installation *v1beta1.Installation) *fixture {
	t.Helper()
	f := &fixture{Server: apitest.Start(t), clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), recorder: record.NewFakeRecorder(20)}
	ov.Namespace, ov.Name = "ns", "web"
	f.Put(ov)
	f.Server.Read(ov)
	o := observation{ring: ring(t), hasPlan: true}
	if installation != nil {
		installation.Name = "ns-web"
		f.Put(installation)
		f.Server.Read(installation)
		o.installation = installation
	}
	c := f.Server.Client()
	r := &Reconciler{Client: c, Reader: c, Keys: fixedKeys{o.ring}, History: history.New(c, c, fixedKeys{o.ring}), Events: f.recorder, Clock: f.clock,
		Judge: func(context.Context, trust.Request) (trust.Verdict, error) { return trust.Verdict{Allowed: true}, nil }}
	f.action = &action{Reconciler: r, Object: loop.NewObject(c, c, f.recorder, ov), observation: o, contents: map[apply.ID]string{}}
	f.Requests()
	return f
}

// key is the name of the OperatorVersion.
func (f *fixture) key() client.ObjectKey { return client.ObjectKeyFromObject(f.Next) }

// writes are the requests since the last call that change something.
func (f *fixture) writes() []string {
	return slices.DeleteFunc(f.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "get ") || strings.HasPrefix(r, "list ") || strings.HasPrefix(r, "/")
	})
}

// recorded are the events since the last call.
func (f *fixture) recorded() (out []string) {
	for len(f.recorder.Events) > 0 {
		out = append(out, <-f.recorder.Events)
	}
	return out
}

// condition is a condition as tests compare it, such as `True Reason message`; empty if there is none.
func (f *fixture) condition(kind string) string {
	for _, c := range f.Next.Status.Conditions {
		if c.Type == kind {
			return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
		}
	}
	return ""
}

// installed sets the condition Installed.
func installed(ov *v1beta1.OperatorVersion) {
	ov.Status.Conditions = []metav1.Condition{{Type: v1beta1.InstalledCondition, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonInstallPlanComplete}}
}
