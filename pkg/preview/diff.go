package preview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/text"
)

const (
	// maxValue bounds a value of a field in a preview, in bytes.
	maxValue = 200
	// maxPath bounds the path of a field, in bytes.
	maxPath = 1000
)

// difference is how two states of an object differ.
type difference struct {
	fields []Field
	// metadata counts the labels and annotations of kudo itself that differ.
	metadata int
	// template is set if the pod template differs, and templateFields counts its fields that are not of kudo itself.
	template       bool
	templateFields int
	// version and hash are set if in the pod template the version of the operator, or the hash of what the pods depend on, differs.
	version, hash bool
}

// Compare returns the fields in which two states of an object differ, as a preview shows them. What the API server keeps, its status, its
// owners, and the metadata of kudo itself do not count.
func Compare(before, after *unstructured.Unstructured, mask params.Mask) []Field {
	return compare(before, after, mask).fields
}

// compare returns how an object would differ. What the API server keeps, its status and its owners do not count.
func compare(before, after *unstructured.Unstructured, mask params.Mask) difference {
	d := differ{mask: mask, secret: isSecret(after)}
	d.diff(nil, content(before), content(after))
	slices.SortFunc(d.fields, func(a, b Field) int { return cmp.Compare(a.Path, b.Path) })
	return d.difference
}

func isSecret(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Secret"
}

// content returns what is compared of an object.
func content(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy()
	delete(out.Object, "status")
	for _, field := range []string{
		"creationTimestamp", "managedFields", "generation", "selfLink", "resourceVersion", "uid", "ownerReferences",
	} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	fields, _ := apply.WithoutEmpty(out.Object).(map[string]any)
	return fields
}

type differ struct {
	difference
	mask   params.Mask
	secret bool
}

// diff compares two values at a path; nil stands for none.
func (d *differ) diff(path []string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	from, isMap := before.(map[string]any)
	to, both := after.(map[string]any)
	if isMap && (both || after == nil) || both && before == nil {
		if len(path) > 0 && len(from) == 0 && len(to) == 0 { // an empty map is there or not
			d.add(path, before, after)
		}
		for _, key := range keysOf(from, to) {
			d.diff(append(slices.Clone(path), step(key)), value(from, key), value(to, key))
		}
		return
	}
	if first, second, ok := keyed(before, after); ok {
		for _, key := range keysOf(first, second) {
			d.diff(append(slices.Clone(path), "["+key+"]"), value(first, key), value(second, key))
		}
		return
	}
	d.add(path, before, after)
}

func value(fields map[string]any, key string) any {
	if v, set := fields[key]; set {
		return v
	}
	return nil
}

func keysOf(a, b map[string]any) []string {
	var out []string
	for key := range a {
		out = append(out, key)
	}
	for key := range b {
		if _, both := a[key]; !both {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// step returns one element of a path. A key with a dot, a bracket or white space stands in brackets, and so does an empty one.
func step(key string) string {
	if strings.ContainsAny(key, "./[] \t\n") || key == "" {
		return "[" + text.Quote(key, maxValue) + "]"
	}
	return "." + key
}

// merge returns a live value with the fields of a body over it, as a server-side apply would, but for what the API server adds.
func merge(live, body any) any {
	from, isMap := live.(map[string]any)
	to, both := body.(map[string]any)
	if isMap && both {
		out := maps.Clone(from)
		for key, value := range to {
			out[key] = merge(from[key], value)
		}
		return out
	}
	first, isList := live.([]any)
	second, both := body.([]any)
	if !isList || !both {
		return body
	}
	known, wanted, ok := keyed(first, second)
	out := make([]any, 0, len(second))
	for i, item := range second {
		switch {
		case ok:
			for key, value := range wanted {
				if reflect.DeepEqual(value, item) {
					item = merge(known[key], item)
					break
				}
			}
		case len(first) == len(second):
			item = merge(first[i], item)
		}
		out = append(out, item)
	}
	return out
}

// mergeKeys are the fields that identify the items of a list, as in the API of Kubernetes. The first of these sets of fields that all items
// have is used.
var mergeKeys = [][]string{
	{"name"}, {"containerPort", "protocol"}, {"containerPort"}, {"port", "protocol"}, {"port"}, {"mountPath"}, {"devicePath"}, {"key"}, {"ip"},
	{"topologyKey"}, {"type"}, {"metadata.name"},
}

// keyed turns two lists of maps into maps by their merge keys, if all items of both have the same ones, and no two are equal.
func keyed(before, after any) (from, to map[string]any, ok bool) {
	first, isList := before.([]any)
	second, both := after.([]any)
	if !isList || !both || len(first)+len(second) == 0 {
		return nil, nil, false
	}
	for _, keys := range mergeKeys {
		a, okA := byKeys(first, keys)
		b, okB := byKeys(second, keys)
		if okA && okB {
			return a, b, true
		}
	}
	return nil, nil, false
}

func byKeys(items []any, keys []string) (map[string]any, bool) {
	out := make(map[string]any, len(items))
	for _, item := range items {
		fields, isMap := item.(map[string]any)
		if !isMap {
			return nil, false
		}
		var parts []string
		for _, key := range keys {
			v, set, err := unstructured.NestedFieldNoCopy(fields, strings.Split(key, ".")...)
			if err != nil || !set {
				return nil, false
			}
			parts = append(parts, key+"="+text.Plain(fmt.Sprint(v), maxValue))
		}
		id := strings.Join(parts, ",")
		if _, twice := out[id]; twice {
			return nil, false
		}
		out[id] = item
	}
	return out, true
}

// add adds a field that differs. A label or annotation of kudo itself is only counted.
func (d *differ) add(path []string, before, after any) {
	inTemplate := len(path) > 2 && path[0] == ".spec" && path[1] == ".template"
	if name := ownMetadata(path); name != "" {
		if slices.Contains(everyRun, name) {
			return
		}
		d.metadata++
		d.template = d.template || inTemplate
		d.version = d.version || inTemplate && name == v1beta1.OperatorVersionAnnotation
		d.hash = d.hash || inTemplate && name == v1beta1.DependenciesHashAnnotation
		return
	}
	if inTemplate {
		d.template = true
		d.templateFields++
	}
	f := Field{Path: strings.Join(path, "")}
	if d.secret && path[0] != ".metadata" && path[0] != ".type" {
		f.Masked, f.Path = true, path[0] // the name of a key may be a secret, too
		if !slices.Contains(d.fields, f) {
			d.fields = append(d.fields, f)
		}
		return
	}
	f.Path = text.Plain(d.mask.Whole(f.Path), maxPath)
	from, to := d.show(before), d.show(after)
	f.whole = from + "\x00" + to
	if strings.Contains(from+to, params.Masked) { // one side may show what the other hides
		f.Masked = true
	} else {
		f.From, f.To = excerpts(from, to)
	}
	d.fields = append(d.fields, f)
}

// show is a value as people read it, without sensitive values.
func (d *differ) show(value any) string {
	if value == nil {
		return ""
	}
	shown, isText := value.(string)
	if !isText {
		encoded, err := json.Marshal(value)
		if err != nil {
			return "?"
		}
		shown = string(encoded)
	} else if shown == "" || strings.ContainsAny(shown, "\n\t") {
		shown = strconv.Quote(shown)
	}
	return d.mask.Whole(shown)
}

// beforeDifference is how many bytes of a long value are shown before the first difference.
const beforeDifference = 20

// excerpts truncates two values that differ to parts that differ, too.
func excerpts(from, to string) (string, string) {
	if a, b := text.Plain(from, maxValue), text.Plain(to, maxValue); a != b {
		return a, b
	}
	at := 0
	for at < min(len(from), len(to)) && from[at] == to[at] {
		at++
	}
	start := max(0, at-beforeDifference)
	cut := func(s string) string {
		if start == 0 {
			return text.Truncate(strconv.Quote(s), maxValue) // they differ in what a line does not show
		}
		return "…" + text.Truncate(strconv.Quote(s[min(start, len(s)):]), maxValue)
	}
	return cut(from), cut(to)
}

// contentOf is all that a body sets but what kudo itself adds, without sensitive values: equal texts are equal bodies.
func contentOf(body *unstructured.Unstructured, mask params.Mask) string {
	if body == nil {
		return ""
	}
	nothing := &unstructured.Unstructured{Object: map[string]any{}}
	var out strings.Builder
	for _, f := range compare(nothing, body, mask).fields {
		fmt.Fprintf(&out, "%s\x00%s\x00", f.Path, f.whole)
	}
	return out.String()
}

// everyRun are the annotations that each run writes anew along with a change.
var everyRun = []string{v1beta1.PlanAnnotation, v1beta1.PhaseAnnotation, v1beta1.StepAnnotation, v1beta1.PlanUIDAnnotation}

// ownMetadata returns the name of the label or annotation of kudo that a path leads to; empty if it leads elsewhere.
func ownMetadata(path []string) string {
	if len(path) < 2 {
		return ""
	}
	parent, last := path[len(path)-2], path[len(path)-1]
	if parent != ".labels" && parent != ".annotations" || len(path) < 3 || path[len(path)-3] != ".metadata" {
		return ""
	}
	name := strings.TrimPrefix(last, ".")
	if unquoted, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(last, "["), "]")); err == nil {
		name = unquoted
	}
	if v1beta1.IsOwnKey(name) && name != v1beta1.KeepAnnotation {
		return name
	}
	return ""
}
