package preview

import (
	"slices"
	"testing"

	"kudo.dev/kudo/pkg/preview"
)

// checkLocal compares the preview of a command by dry runs with the one that only reads: it says the same, unless the API server refuses
// something, which a reader does not see.
func (o *outcome) checkLocal(t *testing.T, command []string) {
	t.Helper()
	since := auditLogSize(t)
	user := "reader-of-" + o.ns
	text, _ := suite.Kudo(append(command, "--dry-run=client", "-o", "json", "--as", user, "--as-group", "system:masters")...)
	checkWrites(t, user, since, false)
	local := decode(t, text)
	if o.preview.Fails() {
		return
	}
	for _, want := range o.preview.Objects {
		i := slices.IndexFunc(local.Objects, func(got preview.Object) bool { return got.ID() == want.ID() })
		switch {
		case i < 0:
			t.Errorf("%s: %s by dry runs, and missing for a reader\n%s\n%s", want.ID(), want.Effect, o.texts, text)
		case local.Objects[i].Effect != want.Effect:
			t.Errorf("%s: %s by dry runs, and %s for a reader: %v %v", want.ID(), want.Effect, local.Objects[i].Effect, want.Fields, local.Objects[i].Fields)
		}
	}
	if got, want := len(local.Objects), len(o.preview.Objects); got != want {
		t.Errorf("%d objects for a reader, and %d by dry runs:\n%s\n%s", got, want, text, o.texts)
	}
}
