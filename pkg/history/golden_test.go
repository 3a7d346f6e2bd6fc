package history

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// recorded is what a golden file holds of a run.
type recorded struct {
	Plan, Version, Snapshot, Value, Password string
	Upgrade                                  bool
}

// before are the versions before each run, by file: the first programs had none.
var before = map[string][3]string{"version-before.yaml": {"", "1.0.0", "1.0.0"}}

// TestGoldenRecords shows R22: the records that earlier versions have written are read, with what is sealed in them. The files are made by
// hack/records.sh.
func TestGoldenRecords(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records of earlier versions are in testdata: %v", err)
	}
	for _, file := range files {
		server := apitest.Start(t, apitest.ReadFile(t, file)...)
		c := server.Client()
		store := New(c, c, NewKeys(c, "kudo-system"))
		instance := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
		server.Read(instance)
		if Newest(instance) != 3 {
			t.Fatalf("R22: %s: the status has run %d, want 3", file, Newest(instance))
		}
		for n, want := range []recorded{
			{"deploy", "lab/web-1.0.0", "site-1", "a", "first", false},
			{"deploy", "lab/web-1.0.0", "site-1", "b", "second", false},
			{"deploy", "lab/web-2.0.0", "site-3", "b", "second", true},
		} {
			run, err := store.Read(t.Context(), instance, int64(n+1))
			if err != nil {
				t.Fatalf("R22: %s: run %d: %v", file, n+1, err)
			}
			if from := before[filepath.Base(file)][n]; run.From.OperatorVersion != from {
				t.Errorf("R22: %s: the version before run %d is %v, want %q", file, n+1, run.From, from)
			}
			got := recorded{run.Plan, run.OperatorVersion, run.Snapshot, run.Parameters["VALUE"], run.Parameters["PASSWORD"], run.Upgrade}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("R22: %s: run %d: -want +got: %s", file, n+1, diff)
			}
			kept, err := store.ReadVersion(t.Context(), instance, run.Snapshot)
			if err != nil {
				t.Fatalf("R22: %s: the OperatorVersion of run %d: %v", file, n+1, err)
			}
			ov := &v1beta1.OperatorVersion{ObjectMeta: gen.Meta("lab", filepath.Base(run.OperatorVersion))}
			server.Read(ov)
			if diff := cmp.Diff(ov.Spec, *kept); diff != "" {
				t.Errorf("R22: %s: the OperatorVersion of run %d: %s", file, n+1, diff)
			}
			record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("lab", Name("site", int64(n+1)))}
			server.Read(record)
			if o := OutcomeOf(record); n < 2 && (o == nil || o.Status != v1beta1.Complete) {
				t.Errorf("R22: %s: the outcome of run %d is %+v", file, n+1, o)
			}
		}
		installs := &v1beta1.OperatorVersion{ObjectMeta: gen.Meta("lab", "web-1.0.0")}
		server.Read(installs)
		if run, err := store.Read(t.Context(), installs, Newest(installs)); err != nil || run.Plan != "install" || !installs.Installed() {
			t.Errorf("R22: %s: the run of the install plan: %+v, %v", file, run, err)
		}
		holder := &v1beta1.Installation{ObjectMeta: gen.Meta("", installs.InstallationName())}
		server.Read(holder)
		if r := holder.Status.Resources; len(r) != 1 || r[0].Kind != "ClusterRole" || r[0].Name != "web-pages" || r[0].UID == "" {
			t.Errorf("R22: %s: the Installation holds %+v", file, r)
		}
	}
}
