package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// reformat writes the record of a run as a version of kudo with another format would, sealed.
func (f *fixture) reformat(t *testing.T, owner client.Object, revision int64, changes ...string) {
	t.Helper()
	ring, err := f.keys.Ring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	record := f.record(t, owner, revision)
	record.Data.Raw = []byte(strings.NewReplacer(changes...).Replace(string(record.Data.Raw)))
	record.Annotations[v1beta1.SealAnnotation] = ring.Seal(parts(owner, revision, record.Data.Raw)...)
	f.Put(record)
}

const unknownFormat = "ControllerRevision ns/web-3 has format 2, and this version of kudo reads formats up to 1: a newer one has written it. " +
	"Upgrade kudo to that version with kubectl kudo init --upgrade"

// TestFormat shows R22: a record says the version of its form, one without has the first, and one of a newer version is named.
func TestFormat(t *testing.T) {
	for reason, tc := range map[string]struct {
		changes []string
		want    string
	}{
		"this version":                     {nil, ""},
		"a version before formats":         {[]string{`"format":1,`, ""}, ""},
		"a newer version":                  {[]string{`"format":1,`, `"format":2,`}, unknownFormat},
		"a format that is no number":       {[]string{`"format":1,`, `"format":"2",`}, "ControllerRevision ns/web-3 was not written by this kudo"},
		"a newer version with another run": {[]string{`"format":1,`, `"format":2,`, `"plan":"deploy"`, `"plan":{"name":"deploy"}`}, unknownFormat},
	} {
		f := newFixture(t)
		if err := f.RecordStart(t.Context(), f.instance, 3, run(f.instance, 3)); err != nil {
			t.Fatal(err)
		}
		if text := string(f.record(t, f.instance, 3).Data.Raw); !strings.Contains(text, `"format":1,`) {
			t.Fatalf("R22: the record does not say its format: %s", text)
		}
		f.reformat(t, f.instance, 3, tc.changes...)
		_, err := f.Store.Read(t.Context(), f.instance, 3)
		if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && got != tc.want {
			t.Errorf("R22: %s: %v", reason, err)
		}
		newer := new(FormatError)
		if errors.As(err, &newer) == Unusable(err) && err != nil {
			t.Errorf("R22: %s: a run of a newer version is not one without a record: %v", reason, err)
		}
	}
}

// TestForgedFormat shows that only what is sealed is believed of a format.
func TestForgedFormat(t *testing.T) {
	f := newFixture(t)
	if err := f.RecordStart(t.Context(), f.instance, 3, run(f.instance, 3)); err != nil {
		t.Fatal(err)
	}
	record := f.record(t, f.instance, 3)
	record.Data.Raw = []byte(strings.Replace(string(record.Data.Raw), `"format":1,`, `"format":2,`, 1))
	f.Put(record)
	if _, err := f.Store.Read(t.Context(), f.instance, 3); !Unusable(err) {
		t.Errorf("a record without a seal keeps a run waiting: %v", err)
	}
	if err := f.RecordStart(t.Context(), f.instance, 3, run(f.instance, 3)); err != nil {
		t.Errorf("a record without a seal is not replaced: %v", err)
	}
}

// TestUnknownFormatStays shows R22: what a newer version has written is neither replaced nor deleted.
func TestUnknownFormatStays(t *testing.T) {
	f := newFixture(t)
	for n := int64(1); n <= 3; n++ {
		if err := f.RecordStart(t.Context(), f.instance, n, run(f.instance, n)); err != nil {
			t.Fatal(err)
		}
	}
	f.reformat(t, f.instance, 3, `"format":1,`, `"format":2,`)
	before := f.record(t, f.instance, 3)
	if err := f.RecordStart(t.Context(), f.instance, 3, run(f.instance, 3)); err == nil || err.Error() != unknownFormat {
		t.Errorf("R22: another run of the number: %v", err)
	}
	if err := f.Trim(t.Context(), f.instance, 13, "web-13"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.record(t, f.instance, 3)); diff != "" {
		t.Errorf("R22: the record was changed: %s", diff)
	}
	// Run 2 goes, and refers to run 1, to which a newer run of an unknown format may refer, too.
	f.reformat(t, f.instance, 2, `"snapshot":"web-2"`, `"snapshot":"web-1"`)
	if err := f.Trim(t.Context(), f.instance, 12, "web-12"); err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= 2; n++ {
		if f.Server.Get(&appsv1.ControllerRevision{ObjectMeta: f.record(t, f.instance, n).ObjectMeta}) == nil {
			t.Errorf("R22: web-%d was deleted, and a run of an unknown format may refer to it", n)
		}
	}
}
