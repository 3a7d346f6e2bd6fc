package preview

import "testing"

// uninstall compares the preview of an uninstallation with what it does.
func uninstall(t *testing.T, ns string) {
	t.Helper()
	command := []string{"uninstall", "i", "-n", ns}
	o := outcome{ns: ns, before: takeSnapshot(t, ns)}
	code := o.ask(t, command)
	o.preview = decode(t, o.texts)
	o.texts += "\n" + suite.MustKudo(t, code, append(command, "--wait")...)
	o.awaitDeletions(t)
	for _, object := range o.preview.Objects {
		if problem := compareObject(object, o.before[object.ID()], o.after[object.ID()]); problem != "" {
			t.Errorf("%s: said %s, but %s\n%s", object.ID(), object.Effect, problem, o.texts)
		}
	}
	o.compareOthers(t)
}
