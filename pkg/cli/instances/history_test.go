package instances

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// onRecords starts an API server with what each earlier version has written.
func onRecords(t *testing.T, do func(t *testing.T, server *apitest.Server)) {
	t.Helper()
	files, err := filepath.Glob("../../history/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no records of earlier versions: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			do(t, onServer(t, apitest.ReadFile(t, file)...))
		})
	}
}

// words are those of a table, with one blank between them.
func words(table string) string { return strings.Join(strings.Fields(table), " ") }

// TestShowRecords shows R22: what an earlier version has written is shown.
func TestShowRecords(t *testing.T) {
	onRecords(t, func(t *testing.T, _ *apitest.Server) {
		for line, want := range map[string][]string{
			"plan history --instance site": {"1 deploy COMPLETE", "instance created", "2 deploy COMPLETE", "parameters changed: VALUE, PASSWORD",
				"3 deploy COMPLETE", "lab/web-2.0.0", "operator version changed from lab/web-1.0.0 to lab/web-2.0.0"},
			"plan history --operator-version web-1.0.0": {"1 install COMPLETE"},
			"plan status --instance site":               {"deploy", "COMPLETE"},
			"get instances":                             {"site", "web-2.0.0", "COMPLETE"},
			"get shared":                                {"ClusterRole", "web-pages"},
		} {
			newCommand := NewPlan
			if strings.HasPrefix(line, "get") {
				newCommand = NewGet
			}
			out, errs := commandtest.Expect(t, newCommand, 0, "", strings.Fields(line)...)
			for _, text := range want {
				if !strings.Contains(words(out), text) {
					t.Errorf("R22: %s: no %q in\n%s%s", line, text, out, errs)
				}
			}
		}
	})
}

// TestRollbackToRecord shows R22: an Instance is rolled back to runs that an earlier version has recorded.
func TestRollbackToRecord(t *testing.T) {
	onRecords(t, func(t *testing.T, server *apitest.Server) {
		for revision, value := range map[string]string{"2": "b", "1": "a"} {
			commandtest.Expect(t, NewRollback, 0, "", "rollback", "--instance", "site", "--to-revision", revision)
			i := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
			server.Read(i)
			want := map[string]string{"VALUE": value, "PASSWORD": "second"} // its former value is sealed, so that the present one stays
			if diff := cmp.Diff(want, i.Spec.Parameters); diff != "" || i.Spec.OperatorVersion.Name != "web-1.0.0" {
				t.Errorf("R22: after the rollback to run %s, spec names %s: %s", revision, i.Spec.OperatorVersion.Name, diff)
			}
		}
	})
}

// TestUnknownRecord shows R22: a record of a newer version is named, and no run is rolled back to.
func TestUnknownRecord(t *testing.T) {
	onRecords(t, func(t *testing.T, server *apitest.Server) {
		record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("lab", "site-2")}
		server.Read(record)
		record.Data.Raw = []byte(`{"format":2,"plan":{"name":"deploy"}}`)
		server.Put(record)
		const named = "ControllerRevision lab/site-2 has format 2, and this version of kudo reads formats up to 1"
		out, errs := commandtest.Expect(t, NewPlan, 0, "", "plan", "history", "--instance", "site")
		if !strings.Contains(words(out), "2 unknown COMPLETE") || !strings.Contains(errs, "Warning: "+named) {
			t.Errorf("R22: the history is\n%s%s", out, errs)
		}
		out, _ = commandtest.Expect(t, NewPlan, 0, "", "plan", "history", "--instance", "site", "-o", "json")
		var runs []map[string]any
		if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 3 || runs[1]["revision"] != 2.0 {
			t.Errorf("R22: the history as JSON is %s (%v)", out, err)
		}
		_, errs = commandtest.Expect(t, NewRollback, 1, "", "rollback", "--instance", "site", "--to-revision", "2")
		if !strings.Contains(errs, "read run 2 of Instance lab/site: "+named) {
			t.Errorf("R22: the rollback says %s", errs)
		}
		commandtest.Expect(t, NewRollback, 0, "", "rollback", "--instance", "site")
		i := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
		if server.Read(i); i.Spec.Parameters["VALUE"] != "a" {
			t.Errorf("R22: the newest run that is known is run 1, and the rollback set %v", i.Spec.Parameters)
		}
	})
}
