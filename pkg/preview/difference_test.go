package preview

import (
	"fmt"
	"strings"
	"testing"
)

// TestWriteDifference checks that what only one of two previews says is listed, by what it is about, bounded, and without control
// characters (P16).
func TestWriteDifference(t *testing.T) {
	base := func(change func(*Preview)) *Preview {
		p := &Preview{Verb: "update", Subject: "Instance ns/site", Runs: []Run{{Plan: "update", Cause: "parameters changed: VALUE", Steps: 2}},
			Objects: []Object{
				{Kind: "ConfigMap", Namespace: "ns", Name: "a", Effect: Modify, Places: []string{"update/main/app/app"}, Fields: []Field{{Path: ".data.key", From: "one", To: "two"}, {Path: ".data.same", To: "x"}}},
				{Kind: "Secret", Namespace: "ns", Name: "s", Effect: Modify, Fields: []Field{{Path: ".data", Masked: true}}},
			}, Children: []*Preview{{Verb: "update", Subject: "Instance ns/child"}}}
		change(p)
		return p
	}
	for _, tc := range []struct {
		reason string
		change func(*Preview)
		want   string
	}{
		{"a field with another value", func(p *Preview) { p.Objects[0].Fields[0].From = "other" },
			"  - ConfigMap ns/a: .data.key: one -> two\n  + ConfigMap ns/a: .data.key: other -> two\n"},
		{"another effect", func(p *Preview) { p.Objects[0].Effect, p.Objects[0].Fields = Create, nil },
			"  - ConfigMap ns/a: change update/main/app/app\n  - ConfigMap ns/a: .data.key: one -> two\n  - ConfigMap ns/a: .data.same: (none) -> x\n" +
				"  + ConfigMap ns/a: create update/main/app/app\n"},
		{"one more object, which stands behind the differences of those before it", func(p *Preview) {
			p.Objects = append(p.Objects, Object{Kind: "Pod", Name: "p\x1b[2J", Effect: Delete})
			p.Runs[0].Steps = 3
		}, "  - update of Instance ns/site: plan 1: update (parameters changed: VALUE), 2 steps\n" +
			"  + update of Instance ns/site: plan 1: update (parameters changed: VALUE), 3 steps\n  + Pod p[2J: delete\n"},
		{"a run that would fail now", func(p *Preview) { p.Runs[0].Failure = &Failure{Step: "main/app", Message: "no"} },
			"  + update of Instance ns/site: plan 1: ✗ would fail at main/app: no\n"},
		{"what is not known now", func(p *Preview) { p.UnknownReasons = []string{"a"} }, "  + update of Instance ns/site: not known: a\n"},
		{"a refusal", func(p *Preview) { p.Refused = []string{"a"} }, "  + update of Instance ns/site: refused: a\n"},
		{"what stays", func(p *Preview) { p.Stays = []Stay{{Object: "ConfigMap ns/b", Why: "it is kept"}} }, "  + ConfigMap ns/b: stays: it is kept\n"},
		{"a child that is not previewed now", func(p *Preview) { p.Children = nil }, "  - update of Instance ns/child\n"},
		{"a masked value that differs is no difference that can be shown", func(p *Preview) { p.Digest = "sha256:other" }, "  both say the same: they differ in what they do not show, such as the end of a long value, the content of a new object or of the OperatorVersion, and the account\n"},
	} {
		var b strings.Builder
		if err := WriteDifference(&b, base(func(*Preview) {}), base(tc.change)); err != nil {
			t.Fatal(err)
		}
		if got, want := b.String(), "difference (- reviewed, + now):\n"+tc.want; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, want)
		}
	}
	many := base(func(p *Preview) {
		for n := range maxDifferences + 5 {
			p.Objects = append(p.Objects, Object{Kind: "Pod", Name: fmt.Sprint("p", n), Effect: Delete, Why: strings.Repeat("x", 1<<14)})
		}
	})
	var b strings.Builder
	if err := WriteDifference(&b, base(func(*Preview) {}), many); err != nil || !strings.HasSuffix(b.String(), "\n  and 50 more lines\n") || b.Len() > maxDifferences*(maxWhy+10) {
		t.Errorf("a long difference: %d bytes, %v", b.Len(), err)
	}
}
