package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/apitest"
)

// TestMask shows U9: values that are too large to search for hide whole messages, and are not searched for.
func TestMask(t *testing.T) {
	half := strings.Repeat("x", maxHidden/2)
	for _, tc := range []struct {
		reason  string
		values  []string
		message string
		want    string
	}{
		{"nothing is sensitive", nil, "login failed", "login failed"},
		{"a value", []string{"hunter22"}, "login with hunter22 failed", "login with (sensitive) failed"},
		{"as much as is searched for", []string{half, half[1:] + "y"}, "login failed", "login failed"},
		{"the same value twice", []string{half, half, half}, "login failed", "login failed"},
		{"more", []string{half, half[1:] + "y", "z"}, "login with z failed", params.Masked},
		{"no message", []string{half + half + "x"}, "", ""},
	} {
		if got := newMask(tc.values).Text(tc.message); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestLines shows U12: what is wrong is masked for the rows that are shown only, and again only after a change.
func TestLines(t *testing.T) {
	r := begin(t, "")
	put := func(n int, change func(*v1beta1.Instance)) *v1beta1.Instance {
		i := instance("a", fmt.Sprintf("i-%03d", n), func(i *v1beta1.Instance) {
			i.Status.Conditions[0].Status, i.Status.AggregatedStatus.Message = "False", "login with hunter22 failed"
			i.Spec.Parameters, i.ResourceVersion = map[string]string{"PASSWORD": "hunter22"}, "1"
			change(i)
		})
		if err := r.instances.informer.GetStore().Add(i); err != nil {
			t.Fatal(err)
		}
		return i
	}
	for n := range pageSize + 20 {
		put(n, func(*v1beta1.Instance) {})
	}
	_, body := r.get(t, "/instances?q=i-007")
	if !strings.Contains(body, "login with (sensitive) failed") || len(r.lines) != 1 {
		t.Errorf("%d rows are masked for a page of one row", len(r.lines))
	}
	if _, _ = r.get(t, "/instances"); len(r.lines) != pageSize {
		t.Errorf("%d rows are masked for a page of %d", len(r.lines), pageSize)
	}
	key := client.ObjectKey{Namespace: "a", Name: "i-007"}
	kept := r.lines[key]
	kept.wrong = "as it was masked before"
	r.lines[key] = kept
	if _, body := r.get(t, "/instances?q=i-007"); !strings.Contains(body, kept.wrong) {
		t.Error("a row is masked again without a change")
	}
	put(7, func(i *v1beta1.Instance) { i.ResourceVersion = "2" })
	if _, body := r.get(t, "/instances?q=i-007"); strings.Contains(body, kept.wrong) {
		t.Error("a row is not masked again after a change of the Instance")
	}
	if err := r.versions.informer.GetStore().Add(version("a", "web-1.0.0", func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[1].Sensitive, ov.ResourceVersion = false, "3" })); err != nil {
		t.Fatal(err)
	}
	if _, body := r.get(t, "/instances?q=i-007"); !strings.Contains(body, "login with hunter22 failed") {
		t.Error("a row is not masked again after a change of the OperatorVersion")
	}
	for n := range maxLines {
		r.lineOf(put(n, func(*v1beta1.Instance) {}))
	}
	if len(r.lines) > maxLines {
		t.Errorf("%d lines are kept", len(r.lines))
	}
	large := put(0, func(i *v1beta1.Instance) {
		i.Spec.Parameters["UNDEFINED"], i.ResourceVersion = strings.Repeat("x", maxHidden+1), "2"
	})
	if line := r.lineOf(large); line != params.Masked {
		t.Errorf("beside large values stands %q", line)
	}
}

// TestEventsAreMaskedLast: events are sorted and cut before they are masked, which takes the longest.
func TestEventsAreMaskedLast(t *testing.T) {
	i := instance("a", "one", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"PASSWORD": "hunter22"} })
	r := begin(t, "", i)
	d := r.watched(t, i)
	r.await(t, "the events are listed", func() bool { return d.events.Status().State == current })
	for n := range maxEvents + 20 {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("one.%d", n)}, InvolvedObject: corev1.ObjectReference{Kind: "Instance", Name: "one"},
			Reason: "R", Message: fmt.Sprintf("event %02d", n)}
		if n == 2 {
			e.Message = "hunter22" // sorted as its value is, it comes last, and would come first masked
		}
		if err := d.events.informer.GetStore().Add(e); err != nil {
			t.Fatal(err)
		}
	}
	list := d.eventList(subject{Instance: i, mask: maskOf(i.Spec.Parameters, nil, nil)})
	if len(list.Rows) != maxEvents || list.Rows[0].Message != "event 00" {
		t.Errorf("%d events, the first one %q", len(list.Rows), list.Rows[0].Message)
	}
	if err := d.events.informer.GetStore().Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	if err := d.events.informer.GetStore().Add(&corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Instance", Name: "one"}, Message: "login with hunter22"}); err != nil {
		t.Fatal(err)
	}
	if list := d.eventList(subject{Instance: i, mask: maskOf(i.Spec.Parameters, nil, nil)}); len(list.Rows) != 1 || list.Rows[0].Message != "login with (sensitive)" {
		t.Errorf("events are shown as %v", list.Rows)
	}
}

// TestRecordedSensitive shows U9: a parameter that was sensitive in any run is masked wherever it stands: its value came from a Secret then,
// and may be the same now. While the runs are not known, all are masked.
func TestRecordedSensitive(t *testing.T) {
	i := instance("a", "one", func(i *v1beta1.Instance) {
		i.Spec.Parameters = map[string]string{"REPLICAS": "1337-of-a-secret", "OTHER": "plain"}
		i.Status.Conditions[0].Message = "it is 1337-of-a-secret"
	})
	ov := version("a", "web-1.0.0", func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "OTHER"}, v1beta1.Parameter{Name: "SIZE", Default: new("5Gi")})
	})
	const clear = "1337-of-a-secret"
	for _, tc := range []struct {
		reason         string
		refused, alone bool
		sensitive      []string // those of each run
		want           map[string]string
		unknown        string
	}{
		{"no run", false, false, nil, map[string]string{"REPLICAS": clear, "OTHER": "plain", "SIZE": "5Gi", "PASSWORD": params.Masked}, ""},
		{"plain in all runs", false, false, []string{"", "PASSWORD"}, map[string]string{"REPLICAS": clear, "OTHER": "plain", "SIZE": "5Gi"}, ""},
		{"sensitive in an old run", false, false, []string{"REPLICAS", "", ""}, map[string]string{"REPLICAS": params.Masked, "OTHER": "plain", "SIZE": "5Gi"}, ""},
		{"no right for runs", true, false, []string{"", "PASSWORD"}, map[string]string{"REPLICAS": params.Masked, "OTHER": params.Masked, "SIZE": params.Masked}, "history"},
		{"no OperatorVersion", false, true, nil, map[string]string{"REPLICAS": params.Masked, "OTHER": params.Masked}, "OperatorVersion"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := apitest.Start(t, i)
			if !tc.alone {
				api.Put(ov)
			}
			for n, name := range tc.sensitive {
				api.Put(record(t, int64(n+1), name))
			}
			api.Before(func(q apitest.Request) (any, error) {
				if q.Kind == "ControllerRevision" && tc.refused {
					return nil, apierrors.NewForbidden(v1beta1.Resource(q.Kind), "", errors.New("no"))
				}
				return nil, nil
			})
			r := beginOn(t, api, "")
			r.await(t, "the Instance and its OperatorVersion are there", func() bool { return r.instances.Status().State == current && r.versions.Status().State == current })
			d := r.watched(t, i)
			r.await(t, "the runs are known, or refused", func() bool { return d.runs.Status().State != loading })
			sub := r.subjectOf(client.ObjectKeyFromObject(i), false, d)
			rows := parametersOf(sub)
			for name, want := range tc.want {
				n := slices.IndexFunc(rows, func(row parameterRow) bool { return row.Name == name })
				if n < 0 || rows[n].Value != want {
					t.Errorf("%s is shown in %v, want %q", name, rows, want)
				}
			}
			if got := sub.Conditions[0].Message; got != "it is "+tc.want["REPLICAS"] {
				t.Errorf("the message is %q", got)
			}
			_, body := r.get(t, "/instances/a/one")
			if said := strings.Contains(body, "treated as sensitive while the "+tc.unknown+" of the Instance"); said != (tc.unknown != "") {
				t.Errorf("why all are hidden is said: %t", said)
			}
		})
	}
	r := begin(t, "", i, ov)
	if sub := r.subjectOf(client.ObjectKeyFromObject(i), false, nil); sub.Unknown != "history" || sub.show("1337-of-a-secret") != params.Masked {
		t.Error("before the runs are read, values are shown")
	}
}

// record returns a run of Instance one with a sensitive parameter, if it has a name.
func record(t *testing.T, revision int64, sensitive string) *appsv1.ControllerRevision {
	t.Helper()
	data := map[string]any{"plan": "deploy", "cause": "c"}
	if sensitive != "" {
		data["sensitive"] = []string{sensitive}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: history.Name("one", revision), Labels: map[string]string{v1beta1.InstanceLabel: "one"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "one", UID: "uid-one", Controller: new(true)}}},
		Revision: revision, Data: runtime.RawExtension{Raw: raw}}
}
