package history

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// fixture is a Store on an API server that has the history key and an Instance.
type fixture struct {
	*apitest.Server
	*Store
	instance *v1beta1.Instance
	version  *v1beta1.OperatorVersion
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	version := gen.Version("ns", "web-1.0", gen.Template("a.yaml", "kind: X"))
	version.UID = "5c8c4ff1-0000-4000-8000-000000000001"
	instance := gen.Instance("web", version, map[string]string{"A": "1"})
	instance.UID = "5c8c4ff1-0000-4000-8000-000000000002"
	server := apitest.Start(t, append(objects, historyKey(t, nil), instance, version)...)
	server.Read(instance)
	server.Read(version)
	c := server.Client()
	return &fixture{server, New(c, c, NewKeys(c, "kudo-system")), instance, version}
}

// historyKey is the Secret of the keys; with data, after one more rotation.
func historyKey(t *testing.T, data map[string][]byte) *corev1.Secret {
	t.Helper()
	data, err := keyring.Rotate(data, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName), Data: data}
}

// run builds what a run of an owner is started with.
func run(owner client.Object, revision int64) Run {
	return Run{
		Plan: "deploy", UID: RunUID(owner.GetUID(), revision), OperatorVersion: "ns/web-1.0", Snapshot: NameFor(owner, revision),
		ServiceAccount: "kudo", Parameters: map[string]string{"A": "1", "PASSWORD": "s3cret"}, Sensitive: []string{"PASSWORD", "UNSET"},
		Started: metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)),
	}
}

func (f *fixture) record(t *testing.T, owner client.Object, revision int64) *appsv1.ControllerRevision {
	t.Helper()
	record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", NameFor(owner, revision))}
	f.Server.Read(record)
	return record
}

// TestRecordStart checks that what was recorded is read again, and that no sensitive value is seen in the cluster.
func TestRecordStart(t *testing.T) {
	f := newFixture(t)
	for _, owner := range []client.Object{f.instance, f.version} {
		want := run(owner, 3)
		if err := f.RecordStart(t.Context(), owner, 3, want); err != nil {
			t.Fatal(err)
		}
		got, err := f.Store.Read(t.Context(), owner, 3)
		if err != nil {
			t.Fatal(err)
		}
		want.Key = "1"
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%T: %s", owner, diff)
		}
		record := f.record(t, owner, 3)
		if text := string(record.Data.Raw); strings.Contains(text, "s3cret") || !strings.Contains(text, `"A":"1"`) {
			t.Errorf("%T: the record shows %s", owner, text)
		}
		if !metav1.IsControlledBy(record, owner) || record.Revision != 3 || record.Labels[v1beta1.HistoryLabel] != string(owner.GetUID()) {
			t.Errorf("%T: the record belongs to %v, %v", owner, record.OwnerReferences, record.Labels)
		}
	}
	if want := run(f.instance, 3); want.Parameters["PASSWORD"] != "s3cret" {
		t.Error("the values of the caller were sealed")
	}
	if f.record(t, f.instance, 3).Labels[v1beta1.InstanceLabel] != "web" || f.record(t, f.version, 3).Labels[v1beta1.InstanceLabel] != "" {
		t.Error("the label of the Instance is for records of Instances")
	}
}

// TestReadRefuses checks each way in which a record may not be what kudo has written.
func TestReadRefuses(t *testing.T) {
	const forged = "ControllerRevision ns/web-3 was not written by this kudo"
	for name, tc := range map[string]struct {
		reason string
		change func(*fixture, *appsv1.ControllerRevision)
		want   string
	}{
		"Missing": {"a record that was deleted", func(f *fixture, r *appsv1.ControllerRevision) { f.Remove(r) }, "ControllerRevision ns/web-3 is missing"},
		"Data": {"another account to write with", func(_ *fixture, r *appsv1.ControllerRevision) {
			r.Data.Raw = []byte(strings.Replace(string(r.Data.Raw), `"kudo"`, `"admin"`, 1))
		}, forged},
		"Added": {"a field more", func(_ *fixture, r *appsv1.ControllerRevision) {
			r.Data.Raw = []byte(strings.Replace(string(r.Data.Raw), "{", `{"privileged":true,`, 1))
		}, forged},
		"Empty":     {"no content", func(_ *fixture, r *appsv1.ControllerRevision) { r.Data.Raw = []byte("{}") }, forged},
		"NoSeal":    {"no seal", func(_ *fixture, r *appsv1.ControllerRevision) { delete(r.Annotations, v1beta1.SealAnnotation) }, forged},
		"Revision":  {"another number in the object", func(_ *fixture, r *appsv1.ControllerRevision) { r.Revision = 4 }, forged},
		"Owner":     {"another owner", func(_ *fixture, r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "other" }, forged},
		"Orphan":    {"no owner", func(_ *fixture, r *appsv1.ControllerRevision) { r.OwnerReferences = nil }, forged},
		"NoControl": {"an owner that does not control it", func(_ *fixture, r *appsv1.ControllerRevision) { r.OwnerReferences[0].Controller = nil }, forged},
		"Swapped": {"the record of another run under this name", func(f *fixture, r *appsv1.ControllerRevision) {
			two := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-2")}
			f.Server.Read(two)
			r.Data, r.Annotations = two.Data, two.Annotations
		}, forged},
		"Version": {"the record of an OperatorVersion under an Instance", func(f *fixture, r *appsv1.ControllerRevision) {
			of := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1.0-install-3")}
			f.Server.Read(of)
			r.Data, r.Annotations = of.Data, of.Annotations
		}, forged},
		"OtherKey": {"a seal of a key that was replaced", func(f *fixture, _ *appsv1.ControllerRevision) {
			f.Remove(historyKeyObject())
			f.Put(&corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName), Data: map[string][]byte{"current": []byte("1"), "1": make([]byte, 32)}})
		}, forged},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, n := range []int64{2, 3} {
				if err := errors.Join(f.RecordStart(t.Context(), f.instance, n, run(f.instance, n)), f.RecordStart(t.Context(), f.version, n, run(f.version, n))); err != nil {
					t.Fatal(err)
				}
			}
			record := f.record(t, f.instance, 3)
			before := record.DeepCopy()
			tc.change(f, record)
			if !cmp.Equal(before, record) {
				f.Put(record)
			}
			got, err := f.Store.Read(t.Context(), f.instance, 3)
			if !Unusable(err) || err.Error() != tc.want {
				t.Errorf("%s is read: %+v, %v", tc.reason, got, err)
			}
		})
	}
}

func historyKeyObject() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName)}
}

// TestReadOtherForms checks that a record is read in each form in which the API server may return it.
func TestReadOtherForms(t *testing.T) {
	f := newFixture(t)
	if err := f.RecordStart(t.Context(), f.instance, 3, run(f.instance, 3)); err != nil {
		t.Fatal(err)
	}
	record := f.record(t, f.instance, 3)
	record.Data.Raw = []byte("\n " + strings.ReplaceAll(string(record.Data.Raw), ",", ",\n\t") + "\n")
	record.Labels, record.Annotations["other"] = nil, "x"
	f.Put(record)
	if _, err := f.Store.Read(t.Context(), f.instance, 3); err != nil {
		t.Errorf("white space, labels and annotations of others do not matter: %v", err)
	}
}

// TestReadAfterRotation checks that a record is read as long as its key is there, and names it.
func TestReadAfterRotation(t *testing.T) {
	f := newFixture(t)
	if err := f.RecordStart(t.Context(), f.instance, 1, run(f.instance, 1)); err != nil {
		t.Fatal(err)
	}
	key := historyKeyObject()
	f.Server.Read(key)
	f.Put(historyKey(t, key.Data))
	if err := f.RecordStart(t.Context(), f.instance, 2, run(f.instance, 2)); err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[int64]string{1: "1", 2: "2"} {
		if got, err := f.Store.Read(t.Context(), f.instance, revision); err != nil || got.Key != want || got.Parameters["PASSWORD"] != "s3cret" {
			t.Errorf("run %d: %+v, %v", revision, got, err)
		}
	}
}

// TestRecordStartAgain checks what becomes of a record that has the name of a run that is about to be started.
func TestRecordStartAgain(t *testing.T) {
	other := func(r Run) Run {
		r.Parameters = map[string]string{"A": "2"}
		return r
	}
	later := func(r Run) Run {
		r.Started = metav1.NewMicroTime(r.Started.Add(time.Hour))
		return r
	}
	for name, tc := range map[string]struct {
		reason string
		// left is what is there; committed is set if the Instance's status names the run.
		left      func(*fixture) *appsv1.ControllerRevision
		committed bool
		next      func(Run) Run
		requests  []string
		err       string
	}{
		"Same": {"a crash came before the commit: the record stays as it is", nil, false, later,
			[]string{"create ControllerRevision ns/", "get ControllerRevision ns/web-3"}, ""},
		"Changed": {"spec has changed since: the record is replaced", nil, false, other,
			[]string{"create ControllerRevision ns/", "get ControllerRevision ns/web-3", "get Instance ns/web", "delete ControllerRevision ns/web-3", "create ControllerRevision ns/"}, ""},
		"Committed": {"the run has been started: its record is not replaced", nil, true, other,
			[]string{"create ControllerRevision ns/", "get ControllerRevision ns/web-3", "get Instance ns/web"},
			`Operation cannot be fulfilled on Instance.kudo.dev "web": run 3 was started concurrently`},
		"Foreign": {"what kudo did not make is not touched", func(*fixture) *appsv1.ControllerRevision {
			return &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-3"), Revision: 3}
		}, false, other, []string{"create ControllerRevision ns/", "get ControllerRevision ns/web-3"},
			"ControllerRevision ns/web-3 exists and is no record of kudo, so that the run cannot be recorded under that name: it was not changed. Delete it"},
		"Former": {"that of a former Instance of the name is about to be collected", func(f *fixture) *appsv1.ControllerRevision {
			r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-3"), Revision: 3}
			former := f.instance.DeepCopy()
			former.UID = "former"
			r.Labels = map[string]string{v1beta1.HistoryLabel: "former"}
			r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(former, v1beta1.GroupVersion.WithKind("Instance"))}
			return r
		}, false, other, []string{"create ControllerRevision ns/", "get ControllerRevision ns/web-3"},
			"ControllerRevision ns/web-3 exists and belongs to a former Instance web: waiting for its deletion"},
		"StatefulSet": {"that of a StatefulSet is not taken for ours", func(*fixture) *appsv1.ControllerRevision {
			r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-3"), Revision: 3}
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "set"}}
			r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
			return r
		}, false, other, []string{"create ControllerRevision ns/", "get ControllerRevision ns/web-3"},
			"ControllerRevision ns/web-3 exists and belongs to StatefulSet web, so that the run cannot be recorded under that name: it was not changed. Delete StatefulSet web"},
		"Forged": {"one that a user has written with the label and the owner is replaced before a commit", func(f *fixture) *appsv1.ControllerRevision {
			r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-3"), Revision: 3}
			r.Labels = map[string]string{v1beta1.HistoryLabel: string(f.instance.UID)}
			r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.instance, v1beta1.GroupVersion.WithKind("Instance"))}
			return r
		}, false, later,
			[]string{"create ControllerRevision ns/", "get ControllerRevision ns/web-3", "get Instance ns/web", "delete ControllerRevision ns/web-3", "create ControllerRevision ns/"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if tc.left != nil {
				f.Put(tc.left(f))
			} else if err := f.RecordStart(t.Context(), f.instance, 3, run(f.instance, 3)); err != nil {
				t.Fatal(err)
			}
			before := f.record(t, f.instance, 3)
			if tc.committed {
				newer := f.instance.DeepCopy()
				newer.Status.Baseline = &v1beta1.Baseline{Revision: 3}
				f.Put(newer)
			}
			f.Requests()
			next := tc.next(run(f.instance, 3))
			err := f.RecordStart(t.Context(), f.instance, 3, next)
			requests := slices.DeleteFunc(f.Requests(), func(r string) bool { return strings.Contains(r, "Secret") })
			if diff := cmp.Diff(tc.requests, requests); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.err)
			}
			after := f.record(t, f.instance, 3)
			if replaced := before.UID != after.UID; replaced != (err == nil && len(tc.requests) > 2) {
				t.Errorf("%s: replaced %v", tc.reason, replaced)
			}
			if got, unread := f.Store.Read(t.Context(), f.instance, 3); err == nil && (unread != nil || got.Parameters["A"] != next.Parameters["A"]) {
				t.Errorf("%s: %+v, %v", tc.reason, got, unread)
			}
		})
	}
}

// TestRecordStartRaces checks errors and changes by others between the requests of a replacement.
func TestRecordStartRaces(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, at string
		meantime   func(*fixture) error
		want       string
		conflict   bool
	}{
		"Quota": {"a quota: the message says what could not be written", "create ControllerRevision ns/", func(*fixture) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, "web-3", errors.New("exceeded quota"))
		}, `record run 3 of Instance ns/web, with its parameters and its OperatorVersion, in a ControllerRevision: controllerrevisions.apps "web-3" is forbidden: exceeded quota`, false},
		"Read": {"a failing read of what is there", "get ControllerRevision ns/web-3", func(*fixture) error {
			return apierrors.NewInternalError(errors.New("etcd"))
		}, "ControllerRevision ns/web-3: Internal error occurred: etcd", false},
		"Gone": {"the record goes before it is read", "get ControllerRevision ns/web-3", func(f *fixture) error {
			f.Remove(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-3")})
			return nil
		}, `ControllerRevision ns/web-3: controllerrevisions.apps "web-3" not found`, false},
		"Committed": {"the run is committed before the record is deleted", "get Instance ns/web", func(f *fixture) error {
			newer := f.instance.DeepCopy()
			newer.Status.Baseline = &v1beta1.Baseline{Revision: 4}
			f.Put(newer)
			return nil
		}, `Operation cannot be fulfilled on Instance.kudo.dev "web": run 3 was started concurrently`, true},
		"Replaced": {"another object of the name is there when it is deleted", "delete ControllerRevision ns/web-3", func(f *fixture) error {
			record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-3")}
			f.Remove(record)
			f.Put(record)
			return nil
		}, "replace ControllerRevision ns/web-3: Operation cannot be fulfilled on controllerrevisions.apps \"web-3\": the UID in the precondition", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if err := f.RecordStart(t.Context(), f.instance, 3, run(f.instance, 3)); err != nil {
				t.Fatal(err)
			}
			done := false
			f.Before(func(r apitest.Request) (any, error) {
				if done || r.String() != tc.at {
					return nil, nil
				}
				done = true
				return nil, tc.meantime(f)
			})
			next := run(f.instance, 3)
			next.Plan, next.Spec = "update", []byte("packed")
			err := f.RecordStart(t.Context(), f.instance, 3, next)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || apierrors.IsConflict(err) != tc.conflict {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestReadVersion checks which names of ControllerRevisions are those of runs, and that hostile content is refused.
func TestReadVersion(t *testing.T) {
	f := newFixture(t)
	packed, err := Pack(&f.version.Spec)
	if err != nil {
		t.Fatal(err)
	}
	record := func(revision int64, spec []byte) {
		r := run(f.instance, revision)
		r.Spec = spec
		if err := f.RecordStart(t.Context(), f.instance, revision, r); err != nil {
			t.Fatal(err)
		}
	}
	record(1, packed)
	record(2, nil)
	record(3, []byte("no gzip"))
	record(4, packed[:len(packed)/2])
	got, err := f.ReadVersion(t.Context(), f.instance, "web-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&f.version.Spec, got); diff != "" {
		t.Errorf("what was packed comes out: %s", diff)
	}
	for name, tc := range map[string]struct{ reason, want string }{
		"web-2":                          {"a run that holds no spec", "ControllerRevision ns/web-2: EOF"},
		"web-3":                          {"what is not compressed", "ControllerRevision ns/web-3: unexpected EOF"},
		"web-4":                          {"half of it", "ControllerRevision ns/web-4: unexpected EOF"},
		"web-5":                          {"no such run", "ControllerRevision ns/web-5 is missing"},
		"web-01":                         {"the number in another form", "ControllerRevision ns/web-01 was not written by this kudo"},
		"web-+1":                         {"with a sign", "ControllerRevision ns/web-+1 was not written by this kudo"},
		"other-1":                        {"of another Instance", "ControllerRevision ns/other-1 was not written by this kudo"},
		"web":                            {"without a number", "ControllerRevision ns/web was not written by this kudo"},
		"":                               {"without a name", "ControllerRevision ns/ was not written by this kudo"},
		"web-" + strings.Repeat("9", 30): {"a number that is too large", "ControllerRevision ns/web-" + strings.Repeat("9", 30) + " was not written by this kudo"},
	} {
		if spec, err := f.ReadVersion(t.Context(), f.instance, name); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, %v, want %s", tc.reason, spec, err, tc.want)
		}
	}
	large := &v1beta1.OperatorVersionSpec{Templates: map[string]string{"a": strings.Repeat("a", maxSpec)}}
	bomb, err := Pack(large)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(bomb); err == nil {
		t.Error("what unpacks to more than an object can hold is read")
	}
}

// TestKeys checks what is said about a Secret that is no key, and when it is read anew.
func TestKeys(t *testing.T) {
	const remedy = ": restore it from a backup; if there is none, kubectl kudo init --upgrade creates one, or prints what would be lost"
	f := newFixture(t)
	keys := NewKeys(f.Client(), "kudo-system")
	ring := func() *keyring.Ring {
		t.Helper()
		ring, missing, err := TryRing(t.Context(), keys)
		if ring == nil || missing != "" || err != nil {
			t.Fatalf("%v, %q, %v", ring, missing, err)
		}
		return ring
	}
	first := ring()
	if ring() != first {
		t.Error("keys are derived again from an unchanged Secret")
	}
	secret := historyKeyObject()
	f.Server.Read(secret)
	f.Put(historyKey(t, secret.Data))
	if got := ring().Current(); got != "2" {
		t.Errorf("after a rotation, the key %s is used", got)
	}
	for _, tc := range []struct {
		reason string
		change func()
		want   string
	}{
		{"a damaged Secret", func() {
			f.Put(&corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName), Data: map[string][]byte{"current": []byte("1"), "1": []byte("short")}})
		}, `cannot be used: entry "1" must be a number, with 32 bytes`},
		{"none", func() { f.Remove(secret) }, "is missing"},
	} {
		tc.change()
		ring, missing, err := TryRing(t.Context(), keys)
		want := "Secret kudo-system/kudo-history-key, with whose key kudo seals the records of its runs, " + tc.want + remedy
		if ring != nil || err != nil || missing != want {
			t.Errorf("%s: %v, %v\n%s\nwant\n%s", tc.reason, ring, err, missing, want)
		}
		if err := f.RecordStart(t.Context(), f.instance, 1, run(f.instance, 1)); err == nil || err.Error() != want {
			t.Errorf("%s: a run is recorded: %v", tc.reason, err)
		}
	}
	secret.ResourceVersion, secret.UID = "", ""
	f.Put(secret)
	if got := ring().Current(); got != "1" {
		t.Errorf("a Secret that was restored gives key %s", got)
	}
	f.Before(func(apitest.Request) (any, error) { return nil, apierrors.NewTooManyRequestsError("later") })
	if _, missing, err := TryRing(t.Context(), keys); missing != "" || err == nil || err.Error() != "read Secret kudo-system/kudo-history-key: Too many requests: later" {
		t.Errorf("an error is not a missing key: %q, %v", missing, err)
	}
}

// TestTrim checks what a new run deletes: the one beyond the limit, and the OperatorVersion that no run that is kept refers to.
func TestTrim(t *testing.T) {
	name := func(n int) string { return fmt.Sprintf("web-%d", n) }
	for title, tc := range map[string]struct {
		reason string
		// snapshots are what each of the runs from 1 on refers to, by number.
		snapshots []int
		// kept is the snapshot that the status refers to.
		kept int
		want []int
	}{
		"Few":      {"ten runs are kept", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, nil},
		"Own":      {"each run has its own: the oldest goes", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 11, []int{1}},
		"Shared":   {"the oldest holds what all refer to, and stays", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, nil},
		"Second":   {"the second refers to the first, as all do", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, []int{2}},
		"Released": {"with the last run that refers to it goes its OperatorVersion, too", []int{1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 3, []int{1, 2}},
		"Oldest":   {"the oldest run that is kept refers to it", []int{1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 3, nil},
		"Status":   {"what the status refers to stays, since the new run may be given up", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 1, nil},
		"Holder":   {"and so does a holder that only the status refers to", []int{1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 1, []int{2}},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFixture(t)
			for i, snapshot := range tc.snapshots {
				r := run(f.instance, int64(i+1))
				r.Snapshot = name(snapshot)
				if err := f.RecordStart(t.Context(), f.instance, int64(i+1), r); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second call is that of a manager that was stopped in the first
				if err := f.Trim(t.Context(), f.instance, int64(len(tc.snapshots)), name(tc.kept)); err != nil {
					t.Fatal(err)
				}
			}
			var gone []int
			for i := range tc.snapshots {
				if f.Server.Get(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", name(i+1))}) == nil {
					gone = append(gone, i+1)
				}
			}
			if diff := cmp.Diff(tc.want, gone); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestTrimLeavesOthers checks that what has the name of an old run, and is not the owner's, is not deleted.
func TestTrimLeavesOthers(t *testing.T) {
	f := newFixture(t, &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1"), Revision: 1})
	if err := f.Trim(t.Context(), f.instance, 11, "web-11"); err != nil {
		t.Fatal(err)
	}
	if got := f.Requests(); slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, "delete") }) {
		t.Errorf("a foreign ControllerRevision: %v", got)
	}
	mine := run(f.instance, 2)
	if err := f.RecordStart(t.Context(), f.instance, 2, mine); err != nil {
		t.Fatal(err)
	}
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "delete" {
			return nil, apierrors.NewInternalError(errors.New("etcd"))
		}
		return nil, nil
	})
	const want = "delete ControllerRevision ns/web-2, which is beyond the last 10 runs: Internal error occurred: etcd"
	if err := f.Trim(t.Context(), f.instance, 12, "web-12"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestTrimAfterStop stops the manager at each deletion: the next try deletes what is left.
func TestTrimAfterStop(t *testing.T) {
	f := newFixture(t)
	for n := int64(1); n <= 12; n++ {
		r := run(f.instance, n)
		r.Snapshot = fmt.Sprintf("web-%d", max(3, n))
		if n < 3 {
			r.Snapshot = "web-1"
		}
		if err := f.RecordStart(t.Context(), f.instance, n, r); err != nil {
			t.Fatal(err)
		}
	}
	f.After(func(r apitest.Request) (any, error) {
		if r.Verb == "delete" {
			f.After(nil)
			return nil, apierrors.NewInternalError(errors.New("the answer is lost"))
		}
		return nil, nil
	})
	if err := f.Trim(t.Context(), f.instance, 12, "web-12"); err == nil {
		t.Fatal("the manager was not stopped")
	}
	if err := f.Trim(t.Context(), f.instance, 12, "web-12"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web-1", "web-2"} {
		if f.Server.Get(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", name)}) != nil {
			t.Errorf("%s is left", name)
		}
	}
}

// TestRecordOutcome checks what is written about a run that has ended, and that it leaves the sealed record readable.
func TestRecordOutcome(t *testing.T) {
	f := newFixture(t)
	if err := f.RecordStart(t.Context(), f.instance, 1, run(f.instance, 1)); err != nil {
		t.Fatal(err)
	}
	finished := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	status := v1beta1.PlanStatus{Revision: 1, Status: v1beta1.FatalError, Message: "a \"quoted\" message", FinishedTimestamp: &finished}
	if err := f.RecordOutcome(t.Context(), f.instance, status); err != nil {
		t.Fatal(err)
	}
	got := OutcomeOf(f.record(t, f.instance, 1))
	if got == nil || !got.Finished.Equal(&finished) || got.Status != v1beta1.FatalError || got.Message != status.Message {
		t.Errorf("the outcome is %+v", got)
	}
	if _, err := f.Store.Read(t.Context(), f.instance, 1); err != nil {
		t.Errorf("with its outcome, a record is still kudo's: %v", err)
	}
	f.Requests()
	for reason, missing := range map[string]v1beta1.PlanStatus{"a plan that never ran": {}, "a run whose record was deleted": {Revision: 7}} {
		if err := f.RecordOutcome(t.Context(), f.instance, missing); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if diff := cmp.Diff([]string{"patch ControllerRevision ns/web-7"}, f.Requests()); diff != "" {
		t.Error(diff)
	}
	f.Before(func(apitest.Request) (any, error) { return nil, apierrors.NewInternalError(errors.New("etcd")) })
	if err := f.RecordOutcome(t.Context(), f.instance, status); !apierrors.IsInternalError(err) {
		t.Errorf("an error is returned: %v", err)
	}
}

// TestDeleteSensitive checks that of Secrets of the old name only the Instance's own is deleted.
func TestDeleteSensitive(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		owner   types.UID
		present bool
		gone    bool
	}{
		"None":  {"there is none", "", false, true},
		"Own":   {"the Instance's", "5c8c4ff1-0000-4000-8000-000000000002", true, true},
		"Other": {"that of a former Instance of the name", "former", true, false},
		"User":  {"that of a user", "", true, false},
	} {
		f := newFixture(t)
		secret := &corev1.Secret{ObjectMeta: gen.Meta("ns", SecretName("web")), Data: map[string][]byte{"a": []byte("b")}}
		if tc.owner != "" {
			yes := true
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "web", UID: tc.owner, Controller: &yes}}
		}
		if tc.present {
			f.Put(secret)
		}
		if err := f.DeleteSensitive(t.Context(), f.instance); err != nil {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
		if gone := f.Server.Get(secret) == nil; gone != tc.gone {
			t.Errorf("%s: %s: gone %v", name, tc.reason, gone)
		}
	}
}

// TestNameFor checks that the records of an Instance and of an OperatorVersion of one name have different names.
func TestNameFor(t *testing.T) {
	ov := gen.Version("ns", "web")
	i := gen.Instance("web", ov, nil)
	if a, b := NameFor(i, 1), NameFor(ov, 1); a != "web-1" || b != "web-install-1" {
		t.Errorf("%s, %s", a, b)
	}
	ov.UID, i.UID = "a", "a"
	ov.Labels = map[string]string{v1beta1.OperatorLabel: "op"}
	if diff := cmp.Diff(map[string]string{v1beta1.HistoryLabel: "a", v1beta1.OperatorLabel: "op"}, labels(ov)); diff != "" {
		t.Error(diff)
	}
}

// TestNotServed checks that a kind which the API server does not serve at the moment is no record that is missing: a run that is not over
// would fail permanently, and its outcome would be lost.
func TestNotServed(t *testing.T) {
	f := newFixture(t)
	if err := f.RecordStart(t.Context(), f.instance, 1, run(f.instance, 1)); err != nil {
		t.Fatal(err)
	}
	f.RemoveKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
	for name, call := range map[string]func() error{
		"Read":        func() error { _, err := f.Store.Read(t.Context(), f.instance, 1); return err },
		"ReadVersion": func() error { _, err := f.ReadVersion(t.Context(), f.instance, NameFor(f.instance, 1)); return err },
		"RecordOutcome": func() error {
			return f.RecordOutcome(t.Context(), f.instance, v1beta1.PlanStatus{Revision: 1, Status: v1beta1.Complete})
		},
		"Trim": func() error { return f.Trim(t.Context(), f.instance, 20, NameFor(f.instance, 20)) },
	} {
		if err := call(); !apierrors.IsNotFound(err) || Unusable(err) {
			t.Errorf("%s: %v, want a transient error", name, err)
		}
	}
	f.AddKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), true)
	if _, err := f.Store.Read(t.Context(), f.instance, 1); err != nil {
		t.Errorf("the kind is served again: %v", err)
	}
	f.RemoveKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if _, err := f.Store.Read(t.Context(), f.instance, 1); !apierrors.IsNotFound(err) || Unusable(err) {
		t.Errorf("the history key cannot be read: %v, want a transient error", err)
	}
}

// TestUsualDurations (P19): the longest duration of each step in the complete runs of the plan counts.
func TestUsualDurations(t *testing.T) {
	f := newFixture(t)
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	status := func(revision int64, status v1beta1.ExecutionStatus, took ...time.Duration) v1beta1.PlanStatus {
		st := v1beta1.PlanStatus{Revision: revision, Status: status, Phases: []v1beta1.PhaseStatus{{Name: "p"}}}
		for n, d := range took {
			started, finished := metav1.NewMicroTime(begin), metav1.NewMicroTime(begin.Add(d))
			st.Phases[0].Steps = append(st.Phases[0].Steps, v1beta1.StepStatus{Name: fmt.Sprintf("s%d", n), StartedTimestamp: &started, FinishedTimestamp: &finished})
		}
		return st
	}
	ended := func(plan string, st v1beta1.PlanStatus) {
		r := run(f.instance, st.Revision)
		r.Plan = plan
		if err := errors.Join(f.RecordStart(t.Context(), f.instance, st.Revision, r), f.RecordOutcome(t.Context(), f.instance, st)); err != nil {
			t.Fatal(err)
		}
	}
	usual := func(before int64) map[string]time.Duration {
		t.Helper()
		got, err := f.UsualDurations(t.Context(), f.instance, "deploy", before)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	ended("deploy", status(1, v1beta1.Complete, time.Hour, time.Second))
	ended("deploy", status(2, v1beta1.Complete, time.Minute, 2*time.Second, 3*time.Second))
	ended("backup", status(3, v1beta1.Complete, 9*time.Hour))
	ended("deploy", status(4, v1beta1.FatalError, 9*time.Hour))
	if diff := cmp.Diff(map[string]time.Duration{"p/s0": time.Hour, "p/s1": 2 * time.Second, "p/s2": 3 * time.Second}, usual(5)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if got := usual(12); got["p/s0"] != time.Minute {
		t.Errorf("a run that is %d runs ago counts: %v", Limit+1, got)
	}
	f.Requests()
	if got := usual(1); len(got) > 0 || len(f.Requests()) > 0 {
		t.Errorf("before the first run: %v", got)
	}
	record := f.record(t, f.instance, 2)
	record.Annotations[outcomeAnnotation] = `{"status":"COMPLETE","steps":{"p/s0":9223372036854775807,"p/s1":-5}}`
	f.Put(record)
	if got := usual(5); got["p/s0"] != 365*24*time.Hour || got["p/s1"] != time.Second {
		t.Errorf("a forged outcome gives %v", got)
	}
	record.Data.Raw = []byte("{}")
	f.Put(record)
	if got := usual(5); got["p/s0"] != time.Hour {
		t.Errorf("a record that kudo did not write counts: %v", got)
	}
}

// TestPackSize checks that Pack compresses base64. Certificates and keys in templates are base64, and an object may have 1.5 MB.
func TestPackSize(t *testing.T) {
	noise := make([]byte, 300<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	packed, err := Pack(&v1beta1.OperatorVersionSpec{Templates: map[string]string{"noise.yaml": base64.StdEncoding.EncodeToString(noise)}})
	if limit := len(noise) * 105 / 100; err != nil || len(packed) > limit {
		t.Errorf("%d bytes in base64 are packed into %d bytes, more than %d: %v", len(noise), len(packed), limit, err)
	}
}
