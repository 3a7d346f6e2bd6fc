package installation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestObserveSubject checks that the subject is missing only if a live answer says so: the cache may show an older object.
func TestObserveSubject(t *testing.T) {
	version := func(uid types.UID, deleted bool) *v1beta1.OperatorVersion {
		ov := gen.Version("ns", "web-1.0")
		ov.UID = uid
		if deleted {
			now := metav1.Now()
			ov.DeletionTimestamp, ov.Finalizers = &now, []string{v1beta1.OperatorVersionFinalizer}
		}
		return ov
	}
	instance := gen.Instance("web-1.0", version("any", false), nil)
	instance.UID = "web"
	for _, tc := range []struct {
		reason       string
		kind         string
		cached, live client.Object
		refuse       error
		found        bool
		deleted      bool
		err          string
	}{
		{reason: "the cache has it, and the server is not asked", cached: version("web", false), refuse: errors.New("asked"), found: true},
		{reason: "the cache does not have it yet", live: version("web", false), found: true},
		{reason: "the cache has its predecessor", cached: version("old", false), live: version("web", false), found: true},
		{reason: "its predecessor in the cache is being deleted, and it is not", cached: version("old", true), live: version("web", false), found: true},
		{reason: "it is being deleted", cached: version("web", true), found: true, deleted: true},
		{reason: "it does not exist"},
		{reason: "another object has its name", cached: version("new", false), live: version("new", false)},
		{reason: "an Instance has its name", live: instance},
		{reason: "it is an Instance", kind: "Instance", live: instance, found: true},
		{reason: "an OperatorVersion has the name of the Instance", kind: "Instance", live: version("web", false)},
		{reason: "the server does not answer", refuse: apierrors.NewServiceUnavailable("down"), err: "OperatorVersion ns/web-1.0: down"},
		{reason: "the server does not answer, and the cache has its predecessor", cached: version("old", false),
			refuse: apierrors.NewServiceUnavailable("down"), err: "OperatorVersion ns/web-1.0: down"},
		{reason: "a kind that is not served is no object that is deleted", refuse: apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "", 0, false),
			err: "OperatorVersion ns/web-1.0: the server could not find the requested resource"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cache, server := fake.NewClientBuilder().WithScheme(apitest.Scheme()), apitest.Start(t)
			if tc.cached != nil {
				cache.WithObjects(tc.cached)
			}
			if tc.live != nil {
				server.Put(tc.live)
			}
			server.Before(func(apitest.Request) (any, error) { return nil, tc.refuse })
			i := &v1beta1.Installation{}
			i.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "ns", Name: "web-1.0", UID: "web"}
			if tc.kind != "" {
				i.Spec.Subject.Kind = tc.kind
			}
			r := &Reconciler{Client: cache.Build(), Reader: server.Client()}
			got, err := r.observeSubject(t.Context(), i)
			if (tc.err == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if (got != nil) != tc.found {
				t.Fatalf("found %v, want %t", got, tc.found)
			}
			if !tc.found {
				return
			}
			if got.GetUID() != "web" || (got.GetDeletionTimestamp() != nil) != tc.deleted {
				t.Errorf("uid %s, deletion %v, want being deleted %t", got.GetUID(), got.GetDeletionTimestamp(), tc.deleted)
			}
		})
	}
}

// TestObserveUse checks which objects keep an Installation that is being deleted, and what the message says of them.
func TestObserveUse(t *testing.T) {
	subject := func(deleted bool) *v1beta1.OperatorVersion {
		ov := gen.Version("ns", "web-1.0", gen.InstallPlan("install"))
		if deleted {
			now := metav1.Now()
			ov.DeletionTimestamp = &now
		}
		return ov
	}
	successor := func(plan string, installed bool) *v1beta1.OperatorVersion {
		ov := gen.Version("ns", "web-1.0", gen.InstallPlan(plan))
		ov.UID = "successor"
		if installed {
			meta.SetStatusCondition(&ov.Status.Conditions, metav1.Condition{Type: v1beta1.InstalledCondition, Status: metav1.ConditionTrue, Reason: "Test"})
		}
		return ov
	}
	users := func(n int) (out []client.Object) {
		for i := range n {
			out = append(out, gen.Instance(fmt.Sprintf("user-%d", n-i), gen.Version("ns", "web-1.0"), nil))
		}
		return out
	}
	elsewhere := gen.Instance("elsewhere", gen.Version("other", "web-1.0"), nil)
	elsewhere.Spec.OperatorVersion.Namespace = "ns"
	unrelated := gen.Instance("unrelated", gen.Version("other", "web-1.0"), nil)
	const leave = ", or let the OperatorVersion go without it by kubectl kudo uninstall-version --leave-users"
	for _, tc := range []struct {
		reason  string
		kind    string
		subject client.Object
		objects []client.Object
		want    string
	}{
		{reason: "the OperatorVersion exists", subject: subject(false), want: "OperatorVersion ns/web-1.0 needs what is held: delete that, and the Installation goes with it"},
		{reason: "the Instance exists", kind: "Instance", subject: gen.Instance("web-1.0", subject(false), nil),
			want: "Instance ns/web-1.0 needs what is held: delete that, and the Installation goes with it"},
		{reason: "the Instance does not exist: users of an OperatorVersion of its name do not count", kind: "Instance", objects: users(1)},
		{reason: "the OperatorVersion is being deleted, and no Instance uses it", subject: subject(true)},
		{reason: "an Instance of another OperatorVersion does not count", subject: subject(true), objects: []client.Object{unrelated}},
		{reason: "an Instance uses it", subject: subject(true), objects: users(1), want: "OperatorVersion ns/web-1.0 is in use by Instance ns/user-1: uninstall or upgrade it first" + leave},
		{reason: "an Instance of another namespace uses it", subject: subject(true), objects: []client.Object{elsewhere},
			want: "OperatorVersion ns/web-1.0 is in use by Instance other/elsewhere: uninstall or upgrade it first" + leave},
		{reason: "the users are named in order, and some of them only", subject: subject(true), objects: users(5),
			want: "OperatorVersion ns/web-1.0 is in use by Instance ns/user-1, Instance ns/user-2, Instance ns/user-3 and 2 more: uninstall or upgrade it first" + leave},
		{reason: "the OperatorVersion was deleted: it can no longer leave its users", objects: users(1),
			want: "OperatorVersion ns/web-1.0 is in use by Instance ns/user-1: uninstall or upgrade it first"},
		{reason: "a successor has installed what the Instance needs", objects: append(users(1), successor("install", true))},
		{reason: "a successor has not installed it yet", objects: append(users(1), successor("install", false)),
			want: "OperatorVersion ns/web-1.0 is in use by Instance ns/user-1: uninstall or upgrade it first"},
		{reason: "a successor without an install plan installs nothing", objects: append(users(1), successor("", true)),
			want: "OperatorVersion ns/web-1.0 is in use by Instance ns/user-1: uninstall or upgrade it first"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			i := &v1beta1.Installation{}
			i.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "ns", Name: "web-1.0", UID: "web"}
			if tc.kind != "" {
				i.Spec.Subject.Kind = tc.kind
			}
			r := &Reconciler{Reader: apitest.Start(t, tc.objects...).Client()}
			got, err := r.observeUse(t.Context(), i, tc.subject)
			if err != nil {
				t.Fatal(err)
			}
			var want *share.ReleaseBlock
			if tc.want != "" {
				want = &share.ReleaseBlock{Reason: v1beta1.ReasonInUse, Message: tc.want}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

// TestObserveUseRefused checks that what cannot be read counts neither as in use nor as free.
func TestObserveUseRefused(t *testing.T) {
	i := &v1beta1.Installation{}
	i.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "ns", Name: "web-1.0", UID: "web"}
	for _, refused := range []string{"get OperatorVersion ns/web-1.0", "list Instance"} {
		server := apitest.Start(t)
		server.Before(func(r apitest.Request) (any, error) {
			if r.String() == refused {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "any", errors.New("no right"))
			}
			return nil, nil
		})
		block, err := (&Reconciler{Reader: server.Client()}).observeUse(t.Context(), i, nil)
		if !apierrors.IsForbidden(err) || block != nil {
			t.Errorf("%s is refused: %v (%v)", refused, block, err)
		}
	}
}

// TestObserveReadsUseLast checks that the users are read of an Installation only that waits for its release: a list of all Instances
// with each reconcile would be a load.
func TestObserveReadsUseLast(t *testing.T) {
	now := metav1.Now()
	for _, tc := range []struct {
		reason     string
		deleted    *metav1.Time
		finalizers []string
		want       bool
	}{
		{"it exists", nil, []string{v1beta1.InstallationFinalizer}, false},
		{"it was released, and waits for another controller", &now, []string{"example.org/other"}, false},
		{"it waits for its release", &now, []string{"example.org/other", v1beta1.InstallationFinalizer}, true},
	} {
		f := newFixture(t)
		f.terminate()
		f.Put(gen.Instance("user", f.version, nil))
		f.installation.DeletionTimestamp, f.installation.Finalizers = tc.deleted, tc.finalizers
		o, err := f.observe(t.Context(), f.installation)
		if err != nil {
			t.Fatal(err)
		}
		if (o.inUse != nil) != tc.want {
			t.Errorf("%s: in use %v, want %t", tc.reason, o.inUse, tc.want)
		}
	}
}
