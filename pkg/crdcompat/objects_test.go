package crdcompat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// pages serves objects in pages of two, and notes the versions asked for.
type pages struct {
	objects []map[string]any
	expire  int // how many second pages fail, since their token has expired
	asked   []string
}

func (p *pages) List(_ context.Context, kind schema.GroupVersionKind, limit int64, token string) (*unstructured.UnstructuredList, error) {
	p.asked = append(p.asked, kind.Version)
	start, _ := strconv.Atoi(token)
	if start > 0 && p.expire > 0 {
		p.expire--
		return nil, apierrors.NewResourceExpired("expired")
	}
	if limit <= 0 {
		return nil, errors.New("no limit")
	}
	list := &unstructured.UnstructuredList{}
	for i := start; i < len(p.objects) && i < start+2; i++ {
		list.Items = append(list.Items, *(&unstructured.Unstructured{Object: p.objects[i]}).DeepCopy())
	}
	if start+2 < len(p.objects) {
		list.SetContinue(strconv.Itoa(start + 2))
	}
	return list, nil
}

// widget has a spec in flow style.
func widget(t testing.TB, name, f string) map[string]any {
	t.Helper()
	object := map[string]any{}
	text := fmt.Sprintf("{apiVersion: example.org/v1, kind: Widget, metadata: {name: %s, namespace: lab}, spec: {f: %s}}", name, f)
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u.Object
}

func TestObjects(t *testing.T) {
	const obj = "{type: object, properties: {a: "
	for name, tc := range map[string]struct {
		reason, schema, object, want string
	}{
		"Fits":        {"it fits", obj + "{type: string}}}", "{a: x}", ""},
		"Pruned":      {"pruning loses data", "{type: object}", "{a: x}", "spec.f.a: the field would be pruned"},
		"Kept":        {"unless it is kept", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{a: x}", ""},
		"Null":        {"a null is data", obj + "{type: string}}}", "{a: null}", "a null would be dropped"},
		"NullDefault": {"which a default replaces", obj + "{type: string, default: x}}}", "{a: null}", "a null would be dropped, or replaced"},
		"Default":     {"a default helps", "{type: object, required: [a], properties: {a: {type: string, default: x}}}", "{}", ""},
		"Required":    {"required", "{type: object, required: [a], properties: {a: {type: string}}}", "{}", "spec.f.a: Required value"},
		"Type":        {"type, without the value", obj + "{type: integer}}}", "{a: secret}", "spec.f.a: Invalid value"},
		"Format":      {"formats, without the value", obj + "{type: string, format: date}}}", "{a: secret}", "spec.f.a: Invalid value"},
		"Blocked":     {"no rule runs on what has another type", "{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: 'false', message: ruled}]}", "{a: x}", "spec.f.a: Invalid value"},
		"Enum":        {"enum", obj + "{type: string, enum: [y]}}}", "{a: x}", "spec.f.a: Unsupported value"},
		"Set":         {"twins in a set", obj + "{type: array, x-kubernetes-list-type: set, items: {type: string}}}}", "{a: [x, x]}", "spec.f.a[1]: Duplicate value"},
		"Map":         {"twins in a map", obj + "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}}}", "{a: [{k: x}, {k: x}]}", "spec.f.a[1]: Duplicate value"},
		"CEL":         {"rules", obj + "{type: string, x-kubernetes-validations: [{rule: 'self == \"y\"', message: must be y}]}}}", "{a: x}", "spec.f.a: Invalid value: must be y"},
		"CELFits":     {"rules hold", obj + "{type: string, x-kubernetes-validations: [{rule: 'self == oldSelf'}]}}}", "{a: x}", ""},
		"Fence":       {"a rule that only creations break", obj + "{type: string, x-kubernetes-validations: [{rule: 'oldSelf.hasValue()', optionalOldSelf: true}]}}}", "{a: x}", ""},
		"Embedded":    {"embedded objects", obj + "{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}", "{a: {kind: X}}", "spec.f.a.apiVersion: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := parse(t, definition(tc.schema))
			found, err := Validate(t.Context(), crd, crd, &pages{objects: []map[string]any{widget(t, "w", tc.object)}})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, o := range found.Objects {
				got += strings.Join(o.Problems, "; ")
			}
			if found.Checked != 1 || (tc.want == "") != found.Safe() || !strings.Contains(got, tc.want) {
				t.Errorf("%s: %q has no %q", tc.reason, got, tc.want)
			}
			if strings.Contains(got, "ruled") {
				t.Errorf("%s: %s", tc.reason, got)
			}
			if strings.Contains(got, "secret") {
				t.Errorf("values are not shown: %s", got)
			}
		})
	}
}

func TestPages(t *testing.T) {
	crd := parse(t, definition("{type: object, properties: {a: {type: integer, maximum: 10}}}"))
	objects := make([]map[string]any, 0, 61)
	for i := range 61 {
		objects = append(objects, widget(t, fmt.Sprintf("w%02d", i), fmt.Sprintf("{a: %d}", i)))
	}
	for expire, want := range map[int]bool{0: true, restarts: true, restarts + 1: false} {
		found, err := Validate(t.Context(), crd, crd, &pages{objects: objects, expire: expire})
		if (err == nil) != want {
			t.Fatalf("a list is begun again %d times: %v", restarts, err)
		}
		if want && (found.Checked != 61 || found.Invalid != 50 || len(found.Objects) != namedObjects || found.Objects[0].Name != "w11") {
			t.Errorf("all are counted once, the first are named: %s", found)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Validate(ctx, crd, crd, &pages{objects: objects}); !errors.Is(err, context.Canceled) {
		t.Errorf("it can be interrupted: %v", err)
	}
}

func TestVersionsRead(t *testing.T) {
	live := parse(t, strings.ReplaceAll(twoVersions, "schema: {openAPIV3Schema: {type: object}}", "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"))
	new := live.DeepCopy()
	v2 := new.Spec.Versions[0].DeepCopy()
	v2.Name, v2.Storage = "v2", false
	new.Spec.Versions = append(new.Spec.Versions, *v2)
	for name, tc := range map[string]struct {
		reason           string
		conversion       apiextensionsv1.ConversionStrategyType
		asked, unchecked []string
	}{
		"None":    {"objects differ in apiVersion only", apiextensionsv1.NoneConverter, []string{"v1", "v0", "v1"}, nil},
		"Webhook": {"what it makes is not known", apiextensionsv1.WebhookConverter, []string{"v1", "v0"}, []string{"v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			new.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: tc.conversion}
			lister := &pages{}
			found, err := Validate(t.Context(), live, new, lister)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.asked, lister.asked) + cmp.Diff(tc.unchecked, found.Unchecked); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRefusedSchema(t *testing.T) {
	crd := parse(t, definition("{properties: {a: {type: string}}}"))
	if _, err := Validate(t.Context(), crd, crd, &pages{}); err == nil || !strings.Contains(err.Error(), "would be refused") {
		t.Errorf("a schema that is not structural: %v", err)
	}
}

func BenchmarkObject(b *testing.B) {
	crd := parse(b, definition("{type: object, required: [a], properties: {a: {type: string, maxLength: 9}, n: {type: integer, default: 3}, l: {type: array, maxItems: 20, x-kubernetes-list-type: set, items: {type: string, maxLength: 20}}, m: {type: object, additionalProperties: {type: string}}, o: {type: object, properties: {x: {type: integer, minimum: 1, x-kubernetes-validations: [{rule: self > 0}]}}}}}"))
	check, err := newChecker(crd, &crd.Spec.Versions[0], false)
	if err != nil {
		b.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: widget(b, "w", "{a: x, l: [a, b, c, d], m: {k: v, l: w}, o: {x: 5}}")}
	for b.Loop() {
		if problems := check.problems(b.Context(), object); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}
