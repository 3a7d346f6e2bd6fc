package kudoinit

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestCheckFormats shows R19: init says what of a newer version is used, which this one cannot read, and believes only what kudo has sealed.
func TestCheckFormats(t *testing.T) {
	const named = "records of runs that this version of kudo cannot read: 1; the first: ControllerRevision lab/site-3 has format 2, and this version of kudo reads " +
		"formats up to 1: a newer one has written it. Upgrade kudo to that version with kubectl kudo init --upgrade"
	for reason, tc := range map[string]struct {
		record string
		change func(seal func() string, record *appsv1.ControllerRevision)
		want   string
	}{
		"nothing new is used": {"site-3", func(func() string, *appsv1.ControllerRevision) {}, ""},
		"a newer version has written a record": {"site-3", func(seal func() string, r *appsv1.ControllerRevision) {
			r.Annotations[v1beta1.SealAnnotation] = seal()
		}, named},
		"another client has written one": {"site-3", func(func() string, *appsv1.ControllerRevision) {}, ""},
		"it belongs to no object": {"site-3", func(seal func() string, r *appsv1.ControllerRevision) {
			r.Annotations[v1beta1.SealAnnotation], r.OwnerReferences = seal(), nil
		}, ""},
		"a newer version has recorded an install plan": {"web-1.0.0-install-1", func(seal func() string, r *appsv1.ControllerRevision) {
			r.Annotations[v1beta1.SealAnnotation] = seal()
		}, strings.ReplaceAll(named, "site-3", "web-1.0.0-install-1")},
	} {
		server := apitest.Start(t, apitest.ReadFile(t, "../history/testdata/54c4716.yaml")...)
		secret := &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName)}
		server.Read(secret)
		ring, err := keyring.Parse(secret.Data)
		if err != nil {
			t.Fatal(err)
		}
		record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("lab", tc.record)}
		server.Read(record)
		if reason != "nothing new is used" {
			record.Data.Raw = []byte(`{"format":2}`)
		}
		owner := metav1.GetControllerOf(record)
		tc.change(func() string {
			return ring.Seal("kudo/1", "lab", tc.record, tc.record[len(tc.record)-1:], owner.Kind, string(owner.UID), string(record.Data.Raw))
		}, record)
		server.Put(record)
		err = (&HistoryKey{Client: server.Client(), Namespace: "kudo-system"}).Check(t.Context())
		if got := errorText(err); got != tc.want {
			t.Errorf("R19: %s: %s, want %s", reason, got, tc.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
