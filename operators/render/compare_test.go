package render

import (
	"testing"

	"kudo.dev/kudo/operators/yamldoc"
)

// TestComparison checks the words for each difference between a rendering and the same with words in the place of values.
func TestComparison(t *testing.T) {
	w, x := word(0), word(1)
	for name, tc := range map[string]struct{ reason, is, want, differs string }{
		"Same":         {"nothing differs", "a: b", "a: b", ""},
		"Value":        {"a value may be any scalar", "a: b c", "a: " + w, ""},
		"Number":       {"of any type", "a: 12", "a: " + w, ""},
		"Empty":        {"also none at all", "a:", "a: " + w, ""},
		"Documents":    {"one document more", "a: b\n---\nc: d", "a: " + w, "2 documents instead of 1"},
		"NoDocument":   {"no document", "", "a: " + w, "0 documents instead of 1"},
		"RootMap":      {"the document itself", "a: b", w, "the document is a map instead of one value"},
		"RootList":     {"the document itself", "[a]", w, "the document is a list instead of one value"},
		"Map":          {"a map for a value", "a: {b: c}", "a: " + w, "a is a map instead of one value"},
		"List":         {"a list for a value", "a: {b: [c]}", "a: {b: " + w + "}", "a.b is a list instead of one value"},
		"Alias":        {"an alias for a value", "x: &x y\na: *x", "x: &x y\na: " + w, "a is an alias instead of one value"},
		"OneValue":     {"one value for a map", "a: b", "a: {b: " + w + "}", "a is one value instead of a map"},
		"Key":          {"one key more", "a: b\nc: d", "a: " + w, "the document has 2 keys instead of 1"},
		"OneKey":       {"one key less", "a: b", "a: " + w + "\nc: d", "the document has 1 key instead of 2"},
		"OtherKey":     {"another key", "b: c", "a: " + w, "the document lacks text of the template"},
		"Item":         {"one item more", "a: [b, c]", "a: [" + w + "]", "a has 2 items instead of 1"},
		"OneItem":      {"one item less", "a: [b]", "a: [" + w + ", c]", "a has 1 item instead of 2"},
		"ItemPath":     {"items have an index", "a: [x, {b: {c: d}}]", "a: [x, {b: " + w + "}]", "a[1].b is a map instead of one value"},
		"RootItem":     {"also at the root", "- a\n- [b]", "- a\n- " + w, "[1] is a list instead of one value"},
		"Anchor":       {"an anchor of a value", "a: &x b", "a: " + w, "a has another anchor"},
		"AnchorLost":   {"an anchor of the template is lost", "a: b", "a: &x " + w, "a has another anchor"},
		"AnchorOther":  {"another anchor", "a: &y b", "a: &x " + w, "a has another anchor"},
		"AliasOther":   {"another alias", "x: &x 1\ny: &y 2\na: *y", "x: &x 1\ny: &y 2\na: *x", "a refers to another anchor"},
		"Tag":          {"a tag of a value", "a: !!str b", "a: " + w, "a has another tag"},
		"TagOther":     {"another tag", "a: !!int 1", "a: !!str " + w, "a has another tag"},
		"TagSame":      {"a tag of the template", "a: !!str b", "a: !!str " + w, ""},
		"Text":         {"text of the template is cut off", "a: b", "a: " + w + "-c", "a lacks text of the template"},
		"KeyMade":      {"a value may be a key", "b c: d", w + ": d", ""},
		"KeyMadePath":  {"a key of a value is not shown", "secret: [d]", w + ": d", "* is a list instead of one value"},
		"KeyMadeDeep":  {"also further down", "a: {secret: {b: [c]}}", "a: {" + w + ": {b: c}}", "a.*.b is a list instead of one value"},
		"KeyMerge":     {"a value may be no merge", "x: &x {}\n<<: *x", "x: &x {}\n" + w + ": *x", "the document has a merge key"},
		"KeyTwice":     {"a value may not be a key of the template", "a: 1\na: 2", "a: 1\n" + w + ": 2", "the document has a key twice"},
		"KeyTwiceBack": {"in either order", "a: 1\na: 2", w + ": 1\na: 2", "the document has a key twice"},
		"KeyTwoMade":   {"nor may two values be one key", "a: 1\na: 2", w + ": 1\n" + x + ": 2", "the document has a key twice"},
		"KeyTwoWays": {"keys are compared as Kubernetes reads them", "yes: 1\ntrue: 2", w + ": 1\n\"true\": 2",
			"the document has a key twice"},
		"KeyOwnTwice": {"the template itself may have a key twice", "a: 1\na: 2", "a: 1\na: " + w, ""},
		"Kind":        {"kind holds a value", "kind: A", "kind: " + w, "kind"},
		"Version":     {"apiVersion holds a part of a value", "apiVersion: a/v1", "apiVersion: " + w + "/v1", "apiVersion"},
		"KindOfItem":  {"kind of an item of a list", "items: [{kind: A}]", "items: [{kind: " + w + "}]", "kind"},
		"KindItself":  {"the key kind is a value", "kind: A", w + ": A", "kind"},
		"KindBelow":   {"a field of that name elsewhere", "spec: {kind: A}", "spec: {kind: " + w + "}", ""},
		"KindRef": {"an owner reference", "metadata: {ownerReferences: [{kind: A}]}", "metadata: {ownerReferences: [{kind: " + w + "}]}",
			""},
		"KindMerged": {"kind of a merged map", "x: &x {kind: A}\n<<: [*x]", "x: &x {kind: " + w + "}\n<<: [*x]", "kind"},
		"KindItems":  {"items by an alias", "x: &x [{kind: A}]\nitems: *x", "x: &x [{kind: " + w + "}]\nitems: *x", "kind"},
		"ItemsText":  {"items that are no list", "items: A", "items: " + w, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := yamldoc.Split(tc.is)
			if err != nil {
				t.Fatal(err)
			}
			want, err := yamldoc.Split(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			d := (&comparison{origins: []Origin{{Parameters: []string{"P"}}, {Parameters: []string{"P", "Q"}}}}).documents(is, want)
			if d != nil {
				got = d.what
			}
			if got != tc.differs {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.differs)
			}
			if d != nil && d.kind != (tc.differs == "kind" || tc.differs == "apiVersion") {
				t.Errorf("%s: a difference of a kind: %v", tc.reason, d.kind)
			}
			if d != nil && d.kind && d.parameter != "P" {
				t.Errorf("%s: the parameter is %q", tc.reason, d.parameter)
			}
			if free := (&comparison{free: true}).documents(is, want); (free != nil) != (d != nil && !d.kind) {
				t.Errorf("%s: with free kinds: %+v", tc.reason, free)
			}
		})
	}
}

// TestParameterOf checks that a parameter is named only if the action prints no other one.
func TestParameterOf(t *testing.T) {
	c := comparison{origins: []Origin{{Parameters: []string{"A"}}, {Parameters: []string{"A", "B"}}, {}}}
	for text, want := range map[string]string{word(0): "A", "a" + word(0) + "b": "A", "x4" + word(0): "A", word(1): "", word(2): "",
		word(3): "", "plain": "", "": ""} {
		if got := c.parameterOf(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
