package keyring

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// asked is an Instance of generation 3 whose spec ann has written.
func asked(t testing.TB) (*Ring, *v1beta1.Instance) {
	t.Helper()
	ring, _ := ringOf(t, 2)
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid", Generation: 3, Annotations: map[string]string{}},
		Spec: v1beta1.InstanceSpec{Parameters: map[string]string{"WORD": "one"}}}
	i.Annotations[v1beta1.RequestedByAnnotation] = ring.SealRequester(v1beta1.RequestedByAnnotation, i, "ann of the shop")
	return ring, i
}

// TestRequester: the user of an annotation counts for the request that kudo has sealed, and for no other.
func TestRequester(t *testing.T) {
	ring, i := asked(t)
	if got := ring.Requester(v1beta1.RequestedByAnnotation, i); got != "ann of the shop" {
		t.Errorf("the requester is %q", got)
	}
	for reason, change := range map[string]func(i *v1beta1.Instance){
		"a later generation":       func(i *v1beta1.Instance) { i.Generation = 4 },
		"an earlier generation":    func(i *v1beta1.Instance) { i.Generation = 2 },
		"another content":          func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"WORD": "two"} },
		"another uid, as restored": func(i *v1beta1.Instance) { i.UID = "new" },
		"another name":             func(i *v1beta1.Instance) { i.Name = "other" },
		"another namespace":        func(i *v1beta1.Instance) { i.Namespace = "other" },
		"another user": func(i *v1beta1.Instance) {
			seal, _, _ := strings.Cut(i.Annotations[v1beta1.RequestedByAnnotation], " ")
			i.Annotations[v1beta1.RequestedByAnnotation] = seal + " admin"
		},
		"a name without seal": func(i *v1beta1.Instance) { i.Annotations[v1beta1.RequestedByAnnotation] = "admin" },
		"a seal without name": func(i *v1beta1.Instance) {
			i.Annotations[v1beta1.RequestedByAnnotation] = ring.Seal(v1beta1.RequestedByAnnotation) + " "
		},
		"no annotation": func(i *v1beta1.Instance) { i.Annotations = nil },
	} {
		changed := i.DeepCopy()
		change(changed)
		if got := ring.Requester(v1beta1.RequestedByAnnotation, changed); got != "" {
			t.Errorf("%s has the requester %q", reason, got)
		}
	}
	var none *Ring
	if got, seal := none.Requester(v1beta1.RequestedByAnnotation, i), none.SealRequester(v1beta1.RequestedByAnnotation, i, "ann"); got != "" || seal != "" {
		t.Errorf("without keys the requester is %q, and the annotation %q", got, seal)
	}
}

// TestRequesterOfCreation: the request that creates an Instance has no uid yet. What was sealed for it counts for generation 1.
func TestRequesterOfCreation(t *testing.T) {
	ring, i := asked(t)
	i.UID, i.Generation = "", 1
	i.Annotations[v1beta1.RequestedByAnnotation] = ring.SealRequester(v1beta1.RequestedByAnnotation, i, "ann")
	i.UID = "uid"
	if got := ring.Requester(v1beta1.RequestedByAnnotation, i); got != "ann" {
		t.Errorf("the requester is %q", got)
	}
	i.Generation = 2
	if got := ring.Requester(v1beta1.RequestedByAnnotation, i); got != "" {
		t.Errorf("of generation 2, the requester is %q", got)
	}
}

// TestRequesterOfRun: who asks to cancel or retry a run is known apart from who wrote spec.
func TestRequesterOfRun(t *testing.T) {
	ring, i := asked(t)
	i.Annotations[v1beta1.RetryAnnotation] = "run"
	i.Annotations[v1beta1.RunRequestedByAnnotation] = ring.SealRequester(v1beta1.RunRequestedByAnnotation, i, "bob")
	spec, run := ring.Requester(v1beta1.RequestedByAnnotation, i), ring.Requester(v1beta1.RunRequestedByAnnotation, i)
	if spec != "ann of the shop" || run != "bob" {
		t.Errorf("spec is of %q, the retry of %q", spec, run)
	}
	for reason, change := range map[string]func(i *v1beta1.Instance){
		"another run":    func(i *v1beta1.Instance) { i.Annotations[v1beta1.RetryAnnotation] = "run 2" },
		"a cancellation": func(i *v1beta1.Instance) { i.Annotations[v1beta1.CancelAnnotation] = "run" },
		"another uid":    func(i *v1beta1.Instance) { i.UID = "" },
		"the seal of spec": func(i *v1beta1.Instance) {
			i.Annotations[v1beta1.RunRequestedByAnnotation] = i.Annotations[v1beta1.RequestedByAnnotation]
		},
	} {
		changed := i.DeepCopy()
		change(changed)
		if got := ring.Requester(v1beta1.RunRequestedByAnnotation, changed); got != "" {
			t.Errorf("%s has the requester %q", reason, got)
		}
	}
	i.Annotations["other"] = ring.Seal("other", "ns", "web", "uid", "bob") + " bob"
	if got, seal := ring.Requester("other", i), ring.SealRequester("other", i, "bob"); got != "" || seal != "" {
		t.Errorf("another annotation names %q, and is sealed as %q", got, seal)
	}
}

// FuzzRequester: what a client writes into the annotation names no user.
func FuzzRequester(f *testing.F) {
	ring, i := asked(f)
	sealed := i.Annotations[v1beta1.RequestedByAnnotation]
	f.Add("admin")
	f.Add("1. admin")
	f.Add(strings.Replace(sealed, "ann", "admin", 1))
	f.Fuzz(func(t *testing.T, value string) {
		i.Annotations[v1beta1.RequestedByAnnotation] = value
		if got := ring.Requester(v1beta1.RequestedByAnnotation, i); got != "" && value != sealed {
			seal, _, _ := strings.Cut(value, " ")
			if !strings.EqualFold(seal+" "+got, sealed) { // hexadecimal digits may be of upper case
				t.Errorf("%q names %q", value, got)
			}
		}
	})
}
