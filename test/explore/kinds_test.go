package explore

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

// strict makes the API server refuse fields that a definition does not have.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// maxRefusals bounds what the spec prints.
const maxRefusals = 50

// The definitions of all kinds are created, which loads the API server: no other spec runs meanwhile.
var _ = It("Published definitions accept the objects of the bundled rules' cases", Serial, Label("C69", "bundled-kinds"), func() {
	t := GinkgoTB()
	dir := filepath.Join(corpus.Require(t), "kinds")
	p := &publisher{t: t, namespace: suite.NewBareNamespace(t), kinds: map[schema.GroupVersionKind]*published{}, asked: map[string]bool{}}
	p.publish(dir)
	folders, err := cases.Load(os.DirFS(filepath.Join(sourcetree.Root(), "pkg", "explore", "library", "kinds")),
		lua.New(clock.RealClock{}.Now, lua.DefaultLimits()))
	env.Must(t, err)
	for _, folder := range folders {
		for i := range folder.Cases {
			c := &folder.Cases[i]
			env.Must(t, c.Broken)
			for _, o := range objects(t, c) {
				p.ask(fmt.Sprintf("%s %s, %s %s", c.Place, c.Request.Object.GetKind(), c.Name, o.part), o.object)
			}
		}
	}
	if len(p.asked) == 0 {
		t.Fatal("the library has no cases")
	}
	if n := len(p.refusals); n > 0 {
		t.Errorf("%d objects of the cases are refused, of which the first:\n%s", n, strings.Join(p.refusals[:min(n, maxRefusals)], "\n"))
	}
})

// part is an object of a case, and where the case has it.
type part struct {
	part   string
	object *unstructured.Unstructured
}

// objects are the whole objects of a case, and one for each status of a copy.
func objects(t testing.TB, c *cases.Case) []part {
	t.Helper()
	found := []part{{"object", c.Request.Object}}
	if c.Request.Observed != nil {
		found = append(found, part{"observedObj", c.Request.Observed})
	}
	for _, name := range []string{"retained", "revised", "aggregatedStatus"} {
		if fields, ok := c.Output[name].(map[string]any); ok {
			found = append(found, part{"output." + name, &unstructured.Unstructured{Object: fields}})
		}
	}
	for i, item := range c.Request.Items {
		if item.Status == nil {
			continue
		}
		var status any
		env.Must(t, json.Unmarshal(item.Status.Raw, &status))
		copied := c.Request.Object.DeepCopy()
		copied.Object["status"] = status
		found = append(found, part{fmt.Sprintf("statusItems[%d]", i), copied})
	}
	return found
}

// published is a version of a kind, as its definition says.
type published struct {
	namespaced, hasSubstatus bool
	// live is an object of the kind that the API server has stored; nil until one was accepted.
	live *unstructured.Unstructured
}

// publisher asks the API server whether objects can exist. Each question is put once.
type publisher struct {
	t         testing.TB
	namespace string
	kinds     map[schema.GroupVersionKind]*published
	asked     map[string]bool
	refusals  []string
}

// publish creates the definitions of a folder. They stay for other specs.
func (p *publisher) publish(dir string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	env.Must(p.t, err)
	for _, file := range files {
		text := read(p.t, file)
		define(p.t, text)
		var definition apiextensionsv1.CustomResourceDefinition
		env.Must(p.t, runtime.DefaultUnstructuredConverter.FromUnstructured(parse(p.t, text)[0].Object, &definition))
		for _, version := range definition.Spec.Versions {
			p.kinds[schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}] = &published{
				namespaced:   definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
				hasSubstatus: version.Subresources != nil && version.Subresources.Status != nil,
			}
		}
	}
}

// ask creates the object, and writes its status as its controller does: through the status subresource where there is one.
func (p *publisher) ask(place string, object *unstructured.Unstructured) {
	p.t.Helper()
	kind := p.kinds[object.GroupVersionKind()]
	if kind == nil {
		p.refusals = append(p.refusals, place+": no definition of the corpus has "+object.GroupVersionKind().String())
		return
	}
	bare := object.DeepCopy()
	bare.SetNamespace("")
	if kind.namespaced {
		bare.SetNamespace(p.namespace)
	}
	status, hasStatus := bare.Object["status"]
	if kind.hasSubstatus {
		delete(bare.Object, "status")
	}
	p.once(place, bare.Object, func() error { return p.create(kind, bare) })
	if !hasStatus || !kind.hasSubstatus || kind.live == nil {
		return
	}
	fields := map[string]any{"status": status}
	p.once(place+".status", map[string]any{"kind": object.GroupVersionKind().String(), "status": status}, func() error {
		patch, err := json.Marshal(fields)
		env.Must(p.t, err)
		return suite.Status().Patch(ctx, kind.live.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.DryRunAll, strict)
	})
}

// once puts a question unless the same was put before, and notes why the API server refuses.
func (p *publisher) once(place string, question map[string]any, put func() error) {
	p.t.Helper()
	key, err := json.Marshal(question)
	env.Must(p.t, err)
	if p.asked[string(key)] {
		return
	}
	p.asked[string(key)] = true
	if err := put(); err != nil {
		p.refusals = append(p.refusals, fmt.Sprintf("%s: %.600s", place, err))
	}
}

// create tries the creation of an object. The first of a kind's version that is accepted is stored, for statuses to be written to.
func (p *publisher) create(kind *published, o *unstructured.Unstructured) error {
	p.t.Helper()
	if kind.live != nil {
		return suite.Create(ctx, o, client.DryRunAll, strict)
	}
	o = o.DeepCopy()
	o.SetName("bundled-" + o.GroupVersionKind().Version)
	var refusal error
	env.Eventually(p.t, o.GetKind()+" served in "+o.GetAPIVersion(), func() string {
		refusal = suite.Create(ctx, o, strict)
		if meta.IsNoMatchError(refusal) || apierrors.IsNotFound(refusal) {
			return refusal.Error()
		}
		return ""
	})
	if refusal == nil {
		kind.live = o
		p.t.Cleanup(func() { env.Must(p.t, suite.Delete(ctx, o)) })
	}
	return refusal
}
