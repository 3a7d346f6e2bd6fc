package share

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"

	"kudo.dev/kudo/pkg/apply"
)

// strictResource refuses objects with spec.extra, as the API server does of fields that are not in the schema.
type strictResource struct {
	dynamic.ResourceInterface
	calls int
}

var errSchema = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: ".spec.extra: field not declared"}}

func (r *strictResource) Apply(_ context.Context, _ string, obj *unstructured.Unstructured, o metav1.ApplyOptions, _ ...string) (
	*unstructured.Unstructured, error) {
	r.calls++
	if _, extra, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "extra"); extra || len(o.DryRun) == 0 {
		return nil, errSchema
	}
	return obj, nil
}

// publishedSchema is the discovery of a cluster that publishes one document, or fails.
type publishedSchema struct {
	discovery.DiscoveryInterface
	text string
	err  error
}

func (p publishedSchema) OpenAPIV3() openapi.Client { return p }
func (p publishedSchema) Paths() (map[string]openapi.GroupVersion, error) {
	return map[string]openapi.GroupVersion{"apis/sea.io/v1": p}, p.err
}
func (p publishedSchema) Schema(string) ([]byte, error) { return []byte(p.text), nil }
func (p publishedSchema) ServerRelativeURL() string     { return "sea" }

// TestDryRun checks that fields which the schema does not have are dropped once, and which error is left if none is.
func TestDryRun(t *testing.T) {
	schema := func(fields string) string {
		return `{"components": {"schemas": {"Ship": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "sea.io", "version": "v1",
			"kind": "Ship"}], "properties": {"spec": {"type": "object", "properties": {` + fields + `}}}}}}}`
	}
	unread := errors.New("no schema today")
	for reason, c := range map[string]struct {
		fields, spec  string
		unread        error
		before        []apply.Dropped
		calls, drops  int
		failed, joins bool
	}{
		"the body is valid":               {spec: "{size: 1}", calls: 1},
		"an unknown field is dropped":     {fields: `"size": {}`, spec: "{size: 1, extra: 2}", calls: 2, drops: 1},
		"fields are dropped once":         {fields: `"size": {}`, spec: "{extra: 2}", before: []apply.Dropped{{}}, calls: 1, drops: 1, failed: true},
		"no field is unknown":             {fields: `"extra": {}`, spec: "{extra: 2}", calls: 1, failed: true},
		"the schema could not be fetched": {spec: "{extra: 2}", unread: unread, calls: 1, failed: true, joins: true},
	} {
		kinds := apply.NewKinds(nil, publishedSchema{text: schema(c.fields), err: c.unread}, nil)
		resource, v := &strictResource{}, &inspection{dropped: c.before}
		body := parse(t, "{apiVersion: sea.io/v1, kind: Ship, metadata: {name: a}, spec: "+c.spec+"}")
		_, err := (&Session{Engine: &Engine{kinds: kinds}}).dryRun(t.Context(), resource, body, v)
		if (err != nil) != c.failed || c.failed && !errors.Is(err, errSchema) || errors.Is(err, unread) != c.joins {
			t.Errorf("%s: error %v", reason, err)
		}
		if resource.calls != c.calls || len(v.dropped) != c.drops {
			t.Errorf("%s: %d calls, dropped %v", reason, resource.calls, v.dropped)
		}
	}
}
