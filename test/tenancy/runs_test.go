package tenancy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// What becomes of a run: it goes on with its account, or fails with the words of T26.
const (
	goesOn  = ""
	missing = "run %[2]d of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-%[2]d is missing; kubectl kudo plan retry starts it anew"
	alien   = "run %[2]d of Instance %[1]s/x cannot continue: ControllerRevision %[1]s/x-%[2]d was not written by this kudo; kubectl kudo plan retry starts it anew"
	lost    = "run %[2]d of Instance %[1]s/x cannot continue: it was started with the rights of kudo, which namespace %[1]s does not give any more; kubectl kudo plan retry starts it anew"
)

// forgery is what a user with the verb own-status, or an administrator of the cluster, makes of the record or of the status of
// a run that has not ended.
type forgery struct {
	finding, name, reason string
	strike                func(t *testing.T, s *stage)
	// resumed is what becomes of the run in a manager that did not start it; steady, in the one that did.
	resumed, steady string
	// plan that runs; deploy if it is not set.
	plan string
	none bool // the run has the number 0
}

// cases are the attacks that are tried in each mode and moment.
func cases() []attackCase {
	var out []attackCase
	for _, f := range forgeries() {
		out = append(out, f.asCase())
	}
	return slices.Concat(out, personaCases(), tarballCases())
}

func forgeries() []forgery {
	const unknown = "11111111-1111-1111-1111-111111111111"
	record := func(change func(r *appsv1.ControllerRevision)) func(*testing.T, *stage) {
		return func(t *testing.T, s *stage) { s.replace(t, "x-1", change) }
	}
	forge := func(data string) func(r *appsv1.ControllerRevision) {
		return func(r *appsv1.ControllerRevision) {
			r.Data.Raw = bytes.ReplaceAll(r.Data.Raw, []byte(`"serviceAccount":"worker"`), []byte(data))
		}
	}
	status := func(change func(i *v1beta1.Instance, st *v1beta1.PlanStatus)) func(*testing.T, *stage) {
		return func(t *testing.T, s *stage) {
			s.patchStatus(t, func(i *v1beta1.Instance) {
				st := i.Status.PlanStatus["deploy"]
				change(i, &st)
				i.Status.PlanStatus["deploy"] = st
			})
		}
	}
	return []forgery{
		{finding: "3", name: "untouched", reason: "a run continues with the account that it was started with", strike: func(*testing.T, *stage) {}},
		{finding: "3", name: "deleted", reason: "a record that is deleted gives no rights", resumed: missing, strike: func(t *testing.T, s *stage) {
			env.Must(t, suite.Delete(ctx, &appsv1.ControllerRevision{ObjectMeta: gen.Meta(s.ns, "x-1")}))
		}},
		{finding: "3", name: "no account", reason: "nor one in which the account is deleted", resumed: alien, strike: record(forge(`"serviceAccount":""`))},
		{finding: "3", name: "another account", reason: "nor one in which it is another", resumed: alien, strike: record(forge(`"serviceAccount":"kudo"`))},
		{finding: "3", name: "privileged", reason: "nor one that gives itself the rights of kudo", resumed: alien, strike: record(forge(`"privileged":true`))},
		{finding: "3", name: "unlabeled", reason: "nor one without labels and owner", resumed: alien, strike: record(func(r *appsv1.ControllerRevision) {
			r.Labels, r.Annotations, r.OwnerReferences = nil, nil, nil
			forge(`"privileged":true`)(r)
		})},
		{finding: "3", name: "unsealed", reason: "T29: nor one without a seal", resumed: alien, strike: record(func(r *appsv1.ControllerRevision) {
			r.Annotations = nil
			forge(`"privileged":true`)(r)
		})},
		{finding: "3", name: "sealed by others", reason: "nor one with a seal of another key", resumed: alien, strike: record(func(r *appsv1.ControllerRevision) {
			r.Annotations[v1beta1.SealAnnotation] = "1." + strings.Repeat("0", 64)
			forge(`"privileged":true`)(r)
		})},
		{finding: "3", name: "of another Instance", reason: "nor that of another Instance, with its seal, which in a privileged namespace had the rights of kudo", resumed: alien,
			strike: func(t *testing.T, s *stage) {
				boss := env.Read(t, suite.Cluster, &appsv1.ControllerRevision{}, s.ns, "boss-1")
				s.replace(t, "x-1", func(r *appsv1.ControllerRevision) { r.Data, r.Annotations = boss.Data, boss.Annotations })
			}},
		{finding: "3", name: "revision 0", reason: "nor the status, which says that there is no record", resumed: missing, steady: missing, none: true,
			strike: status(func(_ *v1beta1.Instance, st *v1beta1.PlanStatus) { st.UID, st.Revision = unknown, 0 })},
		{finding: "3", name: "another plan", reason: "nor a status of another plan with the run's uid", resumed: alien, steady: alien, plan: "other", strike: func(t *testing.T, s *stage) {
			s.patchStatus(t, func(i *v1beta1.Instance) {
				st := i.Status.PlanStatus
				st["other"], st["deploy"] = st["deploy"], v1beta1.PlanStatus{Name: "deploy", Status: v1beta1.NeverRun}
			})
		}},
		{finding: "3", name: "never a baseline", reason: "one that seems to come from KUDO goes on as its account", none: true,
			strike: status(func(i *v1beta1.Instance, st *v1beta1.PlanStatus) {
				st.UID, st.Revision, i.Status.Baseline = unknown, 0, nil
			})},
	}
}

// asCase makes a case of a forgery. The Instance x names the account worker, which may not write the Secret that its plan wants;
// the Instance boss names none, which in a privileged namespace gives it the rights of kudo.
func (f forgery) asCase() attackCase {
	return attackCase{finding: f.finding, name: f.name, reason: f.reason, begin: begun, ready: hangs, strike: f.strike, holds: f.holds}
}

func begun(t *testing.T, s *stage) {
	s.worker(t)
	ov := prized(s.ns)
	env.Must(t, suite.Create(ctx, ov))
	i := gen.Instance("x", ov, nil)
	i.Spec.ServiceAccountName = "worker"
	env.Must(t, suite.Create(ctx, i))
	quiet := gen.Version(s.ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, quiet))
	env.Must(t, suite.Create(ctx, gen.Instance("boss", quiet, nil)))
}

// boss says as whom the Instance boss of a namespace runs.
func (s *stage) boss() string {
	switch s.mode {
	case labeled, whole:
		return installer
	case everywhere:
		return tenant
	}
	return "kudo"
}

func hangs(t *testing.T, s *stage) {
	s.await(t, "x", refusedTo("worker"))
	s.await(t, "boss", env.PlanEnded("deploy", 1))
}

// refusedTo is a predicate: the account of the namespace is refused something that a plan wants.
func refusedTo(account string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "system:serviceaccount:"+i.Namespace+":"+account+`" cannot`)
	}
}

// becomes is what becomes of the run in a moment.
func (f forgery) becomes(m *moment) string {
	switch {
	case m.steady:
		return f.steady
	case f.resumed == goesOn && m.strangers && !f.none:
		return alien
	}
	return f.resumed
}

func (f forgery) holds(t *testing.T, s *stage) {
	if s.moment.recreated && !f.none {
		f.startsAnew(t, s)
		return
	}
	plan, number := f.plan, int64(1)
	if plan == "" {
		plan = "deploy"
	}
	if f.none {
		number = 0
	}
	want := f.becomes(s.moment)
	if want != goesOn {
		s.failed(t, plan, number, want)
		number = s.retry(t, plan)
		s.await(t, "x", func(i *v1beta1.Instance) bool {
			return refusedTo("worker")(i) && i.Status.PlanStatus[plan].Revision >= number
		})
	}
	s.unwritten(t)
	s.completes(t, plan, number)
}

// startsAnew wants the first run of a restored Instance: its status is that of another uid, so that no record counts, and the run has
// the account of spec. A record that kudo did not make keeps its name.
func (f forgery) startsAnew(t *testing.T, s *stage) {
	t.Helper()
	if f.name == "unlabeled" {
		s.await(t, "x", func(i *v1beta1.Instance) bool {
			ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
			return ready != nil && strings.Contains(ready.Message, "ControllerRevision "+s.ns+"/x-1 exists and is no record of kudo")
		})
		env.Must(t, suite.Delete(ctx, &appsv1.ControllerRevision{ObjectMeta: gen.Meta(s.ns, "x-1")}))
	}
	s.anew(t)
	s.unwritten(t)
	s.completes(t, "deploy", 1)
}

// anew waits for the first run of a restored Instance, which the account worker holds up.
func (s *stage) anew(t *testing.T) {
	t.Helper()
	s.await(t, "x", func(i *v1beta1.Instance) bool {
		return refusedTo("worker")(i) && i.Status.PlanStatus["deploy"].UID == history.RunUID(i.UID, 1)
	})
}

// failed wants the end of a run with words.
func (s *stage) failed(t *testing.T, plan string, number int64, want string) {
	t.Helper()
	i := s.await(t, "x", func(i *v1beta1.Instance) bool {
		return i.Status.PlanStatus[plan].Status.IsTerminal() && i.Status.PlanStatus[plan].Revision == number
	})
	got := i.Status.PlanStatus[plan]
	if got.Status != v1beta1.FatalError || got.Message != fmt.Sprintf(want, s.ns, number) {
		t.Errorf("run %d is %s %q, want %q", got.Revision, got.Status, got.Message, fmt.Sprintf(want, s.ns, number))
	}
	s.unwritten(t)
}

// retry asks for the failed run again, and returns the number of the next one.
func (s *stage) retry(t *testing.T, plan string) int64 {
	t.Helper()
	i := env.Read(t, suite.Cluster, &v1beta1.Instance{}, s.ns, "x")
	patch := client.MergeFrom(i.DeepCopy())
	i.Annotations = map[string]string{v1beta1.RetryAnnotation: string(i.Status.PlanStatus[plan].UID)}
	env.Must(t, suite.Patch(ctx, i, patch))
	return i.Status.Baseline.Revision + 1
}

// unwritten wants the Secret that the account may not write not to be there.
func (s *stage) unwritten(t *testing.T) {
	t.Helper()
	if err := suite.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "x-prize"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the run has written what its account may not: %v", err)
	}
}

// completes gives the account what the run lacks, and wants that very run to end well.
func (s *stage) completes(t *testing.T, plan string, number int64) {
	t.Helper()
	s.role.Rules[0].Resources = append(s.role.Rules[0].Resources, "secrets")
	env.Must(t, suite.Update(ctx, s.role))
	i := s.await(t, "x", func(i *v1beta1.Instance) bool {
		return i.Status.PlanStatus[plan].Status.IsTerminal() && i.Status.PlanStatus[plan].Revision >= number && !strings.Contains(i.Status.PlanStatus[plan].Message, "cannot continue")
	})
	if got := i.Status.PlanStatus[plan]; got.Status != v1beta1.Complete || got.Revision != number {
		t.Errorf("run %d is %s %q, want run %d complete", got.Revision, got.Status, got.Message, number)
	}
}

// worker makes an account that may write ConfigMaps, and nothing else. The plans of the namespace may run as it, and as the account
// of the Instance boss.
func (s *stage) worker(t *testing.T) {
	t.Helper()
	tenants.allow(s.ns, "worker", s.boss())
	env.Must(t, suite.Create(ctx, &corev1.ServiceAccount{ObjectMeta: gen.Meta(s.ns, "worker")}))
	s.role = &rbacv1.Role{ObjectMeta: gen.Meta(s.ns, "worker"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}}
	env.Must(t, suite.Create(ctx, s.role))
	env.Must(t, suite.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(s.ns, "worker"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "worker"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.ns, Name: "worker"}},
	}))
}

// prized is an operator whose deploy plan writes a ConfigMap, and a Secret that the account worker may not write.
func prized(ns string) *v1beta1.OperatorVersion {
	return gen.Version(ns, "op", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1),
		gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Name }}-prize'}\nstringData: {value: '{{ .Params.VALUE }}'}\n"),
		gen.Apply("s", "s.yaml"), gen.Serial("deploy", "cm", "s"), gen.Serial("other", "s"))
}

func (s *stage) await(t *testing.T, name string, holds func(*v1beta1.Instance) bool) *v1beta1.Instance {
	t.Helper()
	i, err := suite.Await(ctx, s.ns, name, env.DefaultTimeout, func(i *v1beta1.Instance) bool { return i != nil && holds(i) })
	env.Must(t, err)
	return i
}

// replace writes a ControllerRevision anew, changed, as an administrator of the cluster can.
func (s *stage) replace(t *testing.T, name string, change func(*appsv1.ControllerRevision)) {
	t.Helper()
	record := env.Read(t, suite.Cluster, &appsv1.ControllerRevision{}, s.ns, name)
	env.Must(t, suite.Delete(ctx, record.DeepCopy()))
	record.ResourceVersion, record.UID = "", ""
	was := string(record.Data.Raw)
	change(record)
	if record.Labels == nil && was == string(record.Data.Raw) {
		t.Fatalf("nothing is forged in %s", was)
	}
	env.Must(t, suite.Create(ctx, record))
}

// patchStatus changes the status of Instance x, as who has the verb own-status can.
func (s *stage) patchStatus(t *testing.T, change func(*v1beta1.Instance)) {
	t.Helper()
	i := env.Read(t, suite.Cluster, &v1beta1.Instance{}, s.ns, "x")
	patch := client.MergeFrom(i.DeepCopy())
	change(i)
	env.Must(t, suite.Status().Patch(ctx, i, patch))
}
