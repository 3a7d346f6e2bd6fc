package instance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestObserveAccount: no cause but the mode of the administrator and the label of the namespace gives a run the rights of kudo.
func TestObserveAccount(t *testing.T) {
	installer, own := apply.Account{Namespace: "kudo-system", Name: "kudo-installer"}, apply.Account{Namespace: "ns", Name: "kudo"}
	for _, tc := range []struct {
		reason     string
		named      string
		mode       settings.Mode
		standard   string
		labels     map[string]string
		want       apply.Account
		privileged bool
		requests   []string
	}{
		{reason: "it names none, and gets the default account of its namespace", mode: settings.Strict, want: own, requests: []string{"get Namespace ns"}},
		{reason: "the administrator has chosen another default account", mode: settings.Strict, standard: "runner", want: apply.Account{Namespace: "ns", Name: "runner"}, requests: []string{"get Namespace ns"}},
		{reason: "it names one of its namespace", named: "mine", mode: settings.Strict, want: apply.Account{Namespace: "ns", Name: "mine"}},
		{reason: "it names one in a privileged namespace", named: "mine", labels: map[string]string{v1beta1.PrivilegedLabel: "true"}, mode: settings.Strict, want: apply.Account{Namespace: "ns", Name: "mine"}},
		{reason: "it names one where all are privileged", named: "mine", mode: settings.Privileged, want: apply.Account{Namespace: "ns", Name: "mine"}},
		{reason: "its namespace is privileged", mode: settings.Strict, labels: map[string]string{v1beta1.PrivilegedLabel: "true"}, want: installer, privileged: true, requests: []string{"get Namespace ns"}},
		{reason: "the label has another value", mode: settings.Strict, labels: map[string]string{v1beta1.PrivilegedLabel: "yes"}, want: own, requests: []string{"get Namespace ns"}},
		{reason: "all namespaces are privileged", mode: settings.Privileged, want: installer, privileged: true},
		{reason: "a mode that is not known is strict", mode: "odd", want: own, requests: []string{"get Namespace ns"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			f.settings.Mode = tc.mode
			if tc.standard != "" {
				f.settings.DefaultAccount = tc.standard
			}
			f.Put(namespace("ns", tc.labels))
			f.change(func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = tc.named })
			a := newAction(f.r, pure(f.instance()).Object)
			if err := a.observeAccount(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a.serviceAccount != tc.want || a.privileged != tc.privileged {
				t.Errorf("it runs as %s, privileged %t", a.serviceAccount, a.privileged)
			}
			if diff := cmp.Diff(append([]string{}, tc.requests...), f.Requests()); diff != "" {
				t.Errorf("requests: -want +got: %s", diff)
			}
		})
	}
}

// namespaceLag is a client whose cache lacks all Namespaces.
type namespaceLag struct{ client.Client }

func (c namespaceLag) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, cached := obj.(*corev1.Namespace); cached {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), key.Name)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// TestObserveAccountOfNewNamespace: a namespace that is not in the cache yet is read live, so that the first run has the account of all later ones.
func TestObserveAccountOfNewNamespace(t *testing.T) {
	f := newFixture(t)
	f.Put(namespace("ns", map[string]string{v1beta1.PrivilegedLabel: "true"}))
	f.r.Client = namespaceLag{f.r.Client}
	a := newAction(f.r, pure(f.instance()).Object)
	if err := a.observeAccount(t.Context()); err != nil || !a.privileged || a.serviceAccount.Name != "kudo-installer" {
		t.Errorf("it runs as %s, privileged %t (%v)", a.serviceAccount, a.privileged, err)
	}
}

// labelLag is a client whose cache shows the label of privileged namespaces after its removal.
type labelLag struct{ client.Client }

func (c labelLag) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	if cached, ok := obj.(*corev1.Namespace); ok {
		cached.Labels = map[string]string{v1beta1.PrivilegedLabel: "true"}
	}
	return err
}

// TestPrivilegeRemoved (T6): nothing is started with the rights of kudo once the label is removed, however late the cache is.
func TestPrivilegeRemoved(t *testing.T) {
	f := newFixture(t)
	f.Put(namespace("ns", map[string]string{v1beta1.PrivilegedLabel: "true"}))
	f.settle(t)
	f.Put(namespace("ns", nil))
	f.Remove(account("ns", "kudo"))
	f.r.Client = labelLag{f.r.Client}
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2"} })
	f.settle(t)
	if got := f.ready(); !strings.HasPrefix(got, "False ServiceAccountNotFound waits for an account: it ran as ServiceAccount kudo-system/kudo-installer") {
		t.Errorf("Ready is %q", got)
	}
	if st := f.instance().Status.PlanStatus["deploy"]; st.Revision != 1 {
		t.Errorf("run %d was started", st.Revision)
	}
}

// TestPrivilegeOfSources (T6): what spec.parametersFrom names is not read with the rights of kudo once the label is removed.
func TestPrivilegeOfSources(t *testing.T) {
	f := newFixture(t)
	f.Put(namespace("ns", nil))
	f.r.Client = labelLag{f.r.Client}
	for _, sources := range [][]v1beta1.ParametersSource{nil, {{Kind: "Secret", Name: "s"}}} {
		f.change(func(i *v1beta1.Instance) { i.Spec.ParametersFrom = sources })
		if a := f.action(t); a.privileged != (sources == nil) {
			t.Errorf("with sources %v: privileged %t", sources, a.privileged)
		}
	}
}

// TestObserveAccountFails: a namespace that does not exist is not privileged, and one that cannot be read gives no account.
func TestObserveAccountFails(t *testing.T) {
	f := newFixture(t)
	f.Remove(namespace("ns", nil))
	a := newAction(f.r, pure(f.instance()).Object)
	if err := a.observeAccount(t.Context()); err != nil || a.privileged || a.serviceAccount.Name != "kudo" {
		t.Errorf("without the namespace: %s, privileged %t (%v)", a.serviceAccount, a.privileged, err)
	}
	f.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "Namespace" {
			return nil, errors.New("the cache is broken")
		}
		return nil, nil
	})
	a = newAction(f.r, pure(f.instance()).Object)
	if err := a.observeAccount(t.Context()); err == nil || !a.serviceAccount.IsZero() || a.privileged {
		t.Errorf("a namespace that cannot be read gives %s, privileged %t (%v)", a.serviceAccount, a.privileged, err)
	}
}

// TestAccountOf: a run continues with the account of its record, whatever the next one has.
func TestAccountOf(t *testing.T) {
	installer, next := apply.Account{Namespace: "kudo-system", Name: "kudo-installer"}, apply.Account{Namespace: "ns", Name: "next"}
	for _, tc := range []struct {
		reason     string
		record     history.Run
		privileged bool
		want       apply.Account
		kudo       bool
	}{
		{"the record names an account", history.Run{ServiceAccount: "old"}, false, apply.Account{Namespace: "ns", Name: "old"}, false},
		{"the record names an account, and the next run is privileged", history.Run{ServiceAccount: "old"}, true, apply.Account{Namespace: "ns", Name: "old"}, false},
		{"the run was privileged", history.Run{Privileged: true}, false, installer, true},
		{"the run was privileged, whatever else its record says", history.Run{Privileged: true, ServiceAccount: "old"}, false, installer, true},
		{"there is no record", history.Run{}, false, next, false},
		{"there is no record, and the next run is privileged", history.Run{}, true, next, true},
	} {
		a := pure(gen.Instance("web", webVersion("web-1.0"), nil))
		a.Installer, a.serviceAccount, a.privileged = installer, next, tc.privileged
		if got, kudo := a.accountOf(tc.record); got != tc.want || kudo != tc.kudo {
			t.Errorf("%s: it continues as %s, privileged %t; want %s, %t", tc.reason, got, kudo, tc.want, tc.kudo)
		}
	}
}

// TestPrivilegeProblem: a run with the rights of kudo ends where the namespace does not give them any more.
func TestPrivilegeProblem(t *testing.T) {
	const lost = "run 7 of Instance ns/web cannot continue: it was started with the rights of kudo, which namespace ns does not give any more; kubectl kudo plan retry starts it anew"
	for _, tc := range []struct {
		was, is bool
		want    string
	}{{false, false, ""}, {false, true, ""}, {true, true, ""}, {true, false, lost}} {
		a := pure(gen.Instance("web", webVersion("web-1.0"), nil))
		a.privileged = tc.is
		if diff := cmp.Diff(tc.want, a.privilegeProblem(tc.was, 7)); diff != "" {
			t.Errorf("privileged %t, then %t: -want +got: %s", tc.was, tc.is, diff)
		}
	}
}

// TestLastAccount: an account that was not chosen by the creator of the Instance does not take the place of the one that it ran as.
func TestLastAccount(t *testing.T) {
	for _, tc := range []struct {
		reason string
		named  string
		base   *v1beta1.Baseline
		want   string
	}{
		{"it never ran", "", nil, ""},
		{"it ran before kudo wrote accounts down", "", &v1beta1.Baseline{}, ""},
		{"it ran as the same one", "", &v1beta1.Baseline{RunAs: "ns/kudo"}, ""},
		{"it ran as another one", "", &v1beta1.Baseline{RunAs: "ns/other"}, "ns/other"},
		{"it ran as the account of its name in another namespace", "", &v1beta1.Baseline{RunAs: "kudo-system/kudo"}, "kudo-system/kudo"},
		{"it ran as another one, and names this one", "kudo", &v1beta1.Baseline{RunAs: "ns/other"}, ""},
	} {
		i := gen.Instance("web", webVersion("web-1.0"), nil)
		i.Spec.ServiceAccountName, i.Status.Baseline = tc.named, tc.base
		a := pure(i)
		a.serviceAccount = apply.Account{Namespace: "ns", Name: "kudo"}
		if got := a.lastAccount(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestAccountMissing: a run waits for an account that does not exist, with the command that creates it.
func TestAccountMissing(t *testing.T) {
	const create = "waits for ServiceAccount ns/kudo, with whose rights the plans run: kubectl kudo account create -n ns --instance web shows the rights they need and makes it"
	const changed = "waits for an account: it ran as ServiceAccount ns/other, which it does not name and which is not the account of Instances that name none any more: " +
		"set spec.serviceAccountName, or kubectl kudo account create -n ns --instance web"
	for _, tc := range []struct {
		reason  string
		prepare func(*fixture)
		// late creates the account once it was not found.
		late bool
		want string
	}{
		{"it exists", func(*fixture) {}, false, ""},
		{"it does not exist", func(f *fixture) { f.Remove(account("ns", "kudo")) }, false, create},
		{"one of its name in another namespace does not count", func(f *fixture) {
			f.Remove(account("ns", "kudo"))
			f.Put(account("other", "kudo"))
		}, false, create},
		{"it was created a moment ago, and the cache does not show it", func(f *fixture) { f.Remove(account("ns", "kudo")) }, true, ""},
		{"kudo's own account is not looked for", func(f *fixture) {
			f.Remove(account("ns", "kudo"))
			f.settings.Mode = settings.Privileged
		}, false, ""},
		{"it ran as another one", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) { i.Status.Baseline = &v1beta1.Baseline{RunAs: "ns/other"} })
		}, false, changed},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			tc.prepare(f)
			a := f.action(t)
			if tc.late {
				found := false
				f.Before(func(r apitest.Request) (any, error) {
					if found && r.Kind == "ServiceAccount" {
						f.Put(account("ns", "kudo"))
					}
					found = true
					return nil, nil
				})
			}
			got, err := a.accountMissing(t.Context())
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got: %s", err, diff)
			}
		})
	}
}

// TestAccountMissingFails: whether an account exists that cannot be read is not known, and is an error.
func TestAccountMissingFails(t *testing.T) {
	f := newFixture(t)
	a := f.action(t)
	f.Before(func(apitest.Request) (any, error) { return nil, errors.New("etcd is slow") })
	if got, err := a.accountMissing(t.Context()); got != "" || err == nil || !strings.Contains(err.Error(), "etcd is slow") {
		t.Errorf("%q, error %v", got, err)
	}
}

// TestChangeOfAccount: if the default account changes, an Instance that names no account waits until its spec names the new one.
func TestChangeOfAccount(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	f.settings.DefaultAccount = "runner"
	f.Put(account("ns", "runner"))
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2"} })
	f.settle(t)
	const waits = "False ServiceAccountNotFound waits for an account: it ran as ServiceAccount ns/kudo, which it does not name"
	if got := f.ready(); !strings.HasPrefix(got, waits) {
		t.Errorf("Ready is %q", got)
	}
	f.change(func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = "runner" })
	f.settle(t)
	i := f.instance()
	if st := i.Status.PlanStatus["deploy"]; st.Revision != 2 || st.Status != v1beta1.Complete || i.Status.Baseline.RunAs != "ns/runner" {
		t.Errorf("run %d is %s, as %s", st.Revision, st.Status, i.Status.Baseline.RunAs)
	}
	record, err := f.r.History.Read(t.Context(), i, 2)
	if err != nil || record.ServiceAccount != "runner" || record.Privileged {
		t.Errorf("the record is %+v (%v)", record, err)
	}
}
