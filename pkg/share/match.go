package share

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/text"
)

// behaviorPrefixes are the prefixes of the labels and annotations that change what an object does. Other labels and annotations are not
// compared.
var behaviorPrefixes = []string{"pod-security.kubernetes.io/", "rbac.authorization.k8s.io/aggregate-to-"}

// Content is what counts of an object when it is compared: all outside of metadata and status, and the labels that
// change what it does.
func Content(obj *unstructured.Unstructured) map[string]any {
	out, metadata := map[string]any{}, map[string]any{}
	for field, value := range obj.Object {
		if field != "metadata" && field != "status" { // the metadata of an object with many owners is long
			out[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedStringMap(obj.Object, "metadata", field)
		for key, value := range values {
			if slices.ContainsFunc(behaviorPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
				kept, _ := metadata[field].(map[string]any)
				if kept == nil {
					kept = map[string]any{}
				}
				kept[key] = value
				metadata[field] = kept
			}
		}
	}
	out["metadata"] = metadata
	if _, aggregated := out["aggregationRule"]; aggregated {
		delete(out, "rules") // a controller fills them in
	}
	if apply.Definitions([]*unstructured.Unstructured{obj}) != nil {
		spec, _ := out["spec"].(map[string]any)
		withoutDescriptions(spec)
		withoutFence(out)
	}
	withoutEmptyBundles(out)
	return apply.WithoutEmpty(out).(map[string]any)
}

// withoutDescriptions drops what a definition has for readers: the descriptions of its schemas and of its columns.
func withoutDescriptions(spec map[string]any) {
	versions, _ := spec["versions"].([]any)
	for _, version := range versions {
		version, _ := version.(map[string]any)
		columns, _ := version["additionalPrinterColumns"].([]any)
		for _, column := range columns {
			column, _ := column.(map[string]any)
			delete(column, "description")
		}
		schema, _ := version["schema"].(map[string]any)
		withoutSchemaDescriptions(schema["openAPIV3Schema"])
	}
}

// withoutSchemaDescriptions drops the descriptions of a schema, of a list of schemas, and of those in them. Defaults and values of an
// enum may have a field of that name, which is content.
func withoutSchemaDescriptions(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		delete(s, "description")
		for key, child := range s {
			switch key {
			case "properties", "patternProperties", "definitions", "dependencies":
				named, _ := child.(map[string]any)
				for _, one := range named {
					withoutSchemaDescriptions(one)
				}
			case "items", "additionalItems", "additionalProperties", "allOf", "anyOf", "oneOf", "not":
				withoutSchemaDescriptions(child)
			}
		}
	case []any:
		for _, one := range s {
			withoutSchemaDescriptions(one)
		}
	}
}

// withoutEmptyBundles drops the empty CA bundles of webhooks.
func withoutEmptyBundles(value any) {
	switch v := value.(type) {
	case map[string]any:
		if bundle, ok := v["caBundle"]; ok && (bundle == nil || bundle == "" || bundle == "Cg==") {
			delete(v, "caBundle")
		}
		for _, child := range v {
			withoutEmptyBundles(child)
		}
	case []any:
		for _, child := range v {
			withoutEmptyBundles(child)
		}
	}
}

func alike(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(Content(a), Content(b))
}

// Fingerprint is a hash of an object's content that the inventory of its one holder keeps; of a Secret it is a keyed digest,
// and "" without keys.
func Fingerprint(obj *unstructured.Unstructured, keys *keyring.Ring) string {
	text, err := json.Marshal(Content(obj)) // keys of maps are sorted
	if err != nil {
		return ""
	}
	if gvk := obj.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Secret" {
		return keys.Digest("content", string(text))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10])
}

// contentDigest is the SHA-256 of an object's content. It is compared in memory, and is written nowhere.
func contentDigest(obj *unstructured.Unstructured) ([sha256.Size]byte, error) {
	text, err := json.Marshal(Content(obj)) // keys of maps are sorted
	return sha256.Sum256(text), err
}

// contains reports whether all that is wanted is there: maps may hold more, and so may lists of named entries.
func contains(wanted, live any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		return ok && containsFields(w, l)
	case []any:
		l, ok := live.([]any)
		return ok && containsEntries(w, l)
	}
	return equality.Semantic.DeepEqual(wanted, live)
}

func containsFields(wanted, live map[string]any) bool {
	for key, value := range wanted {
		if !contains(value, live[key]) {
			return false
		}
	}
	return true
}

// containsEntries reports whether a list has all entries that are wanted: those with a name in any place, others in their place of a list
// of the same length.
func containsEntries(wanted, live []any) bool {
	for i, value := range wanted {
		at := i
		if name := nameOf(value); name != "" {
			at = slices.IndexFunc(live, func(item any) bool { return nameOf(item) == name })
		} else if len(live) != len(wanted) {
			return false
		}
		if at < 0 || at >= len(live) || !contains(value, live[at]) {
			return false
		}
	}
	return true
}

func nameOf(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// Difference is a field in which a live object is not as the package wants it.
type Difference struct {
	// Path of the field, like spec.replicas.
	Path string
	// Live and Wanted are the values as JSON; `absent` if there is none.
	Live, Wanted string
}

// MismatchError names an object that others need in another form.
type MismatchError struct {
	ID          apply.ID
	Differences []Difference
	// Holders are the OperatorVersions and field managers that hold the object, for people.
	Holders []string
	// Reason says more, as with a change that is not safe; it may be empty.
	Reason string
	// Drifted is set if the holder has the object already: another client has changed it since.
	Drifted bool
	// By is the field manager that has changed it last, for people; it may be empty.
	By string
	// Superseded is set if a newer version of the same operator has changed it.
	Superseded bool
}

// unknownHolder stands for the holders of an object that names none.
const unknownHolder = "another owner"

// shown bounds the differences in a message.
const shown = 5

// Error implements error.
func (e *MismatchError) Error() string {
	var parts []string
	for i, d := range e.Differences {
		if i == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(e.Differences)-shown))
			break
		}
		parts = append(parts, fmt.Sprintf("%s is %s, and the package wants %s", d.Path, d.Live, d.Wanted))
	}
	if e.Drifted {
		by := ""
		if e.By != "" {
			by = ", last by " + e.By
		}
		return fmt.Sprintf("%s was changed since it was installed%s: %s. It is not overwritten: revert the change, or take the object over by "+
			"removing its annotation kudo.dev/managed", e.ID, by, strings.Join(parts, "; "))
	}
	holders := unknownHolder
	if len(e.Holders) > 0 {
		holders = strings.Join(e.Holders, ", ")
	}
	text := fmt.Sprintf("%s exists already and does not match: %s. It belongs to %s, and was not changed", e.ID, strings.Join(parts, "; "),
		holders)
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text + ": change the template to match, or rename one of the objects"
}

// diff lists the fields in which wanted differs from live.
func diff(live, wanted *unstructured.Unstructured) []Difference {
	secret := live.GetKind() == "Secret" && live.GroupVersionKind().Group == ""
	var out []Difference
	walk("", Content(live), Content(wanted), &out)
	for i := range out {
		if secret && (strings.HasPrefix(out[i].Path, "data") || strings.HasPrefix(out[i].Path, "stringData")) {
			out[i].Live, out[i].Wanted = masked(out[i].Live), masked(out[i].Wanted)
		}
	}
	return out
}

func masked(value string) string {
	if value == none {
		return none
	}
	return "***"
}

// none stands for a value that is not there.
const none = "absent"

func walk(path string, live, wanted any, out *[]Difference) {
	if equality.Semantic.DeepEqual(live, wanted) {
		return
	}
	a, isMap := live.(map[string]any)
	b, both := wanted.(map[string]any)
	if isMap && both {
		keys := slices.Collect(maps.Keys(a))
		for key := range b {
			if _, known := a[key]; !known {
				keys = append(keys, key)
			}
		}
		sort.Strings(keys)
		for _, key := range keys {
			walk(join(path, key), a[key], b[key], out)
		}
		return
	}
	x, isList := live.([]any)
	y, both := wanted.([]any)
	if isList && both && len(x) == len(y) {
		for i := range x {
			walk(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], out)
		}
		return
	}
	*out = append(*out, Difference{Path: path, Live: show(live), Wanted: show(wanted)})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// maxValue is the size of a value in a message, in bytes.
const maxValue = 120

func show(value any) string {
	if value == nil || reflect.ValueOf(value).Kind() == reflect.Map && reflect.ValueOf(value).Len() == 0 {
		return none
	}
	return text.JSON(value, maxValue)
}
