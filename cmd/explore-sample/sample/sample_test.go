package sample

import (
	"context"
	"crypto/tls"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// resources are the two kinds of the sample.
type resources struct{}

func (resources) Resource(_ context.Context, kind schema.GroupVersionKind) (string, bool, error) {
	if kind.Kind == "Bar" {
		return "bars", false, nil
	}
	return "foos", true, nil
}

// TestSample asks the sample over TLS, by the configuration that it writes.
func TestSample(t *testing.T) {
	certificate, bundle, err := SelfSigned([]string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(Handler())
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	t.Cleanup(s.Close)
	text, err := Configuration(s.URL, bundle)
	if err != nil {
		t.Fatal(err)
	}
	var configuration v1alpha1.ResourceExploringWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &configuration); err != nil {
		t.Fatal(err)
	}
	if errs := webhook.Validate(&configuration); len(errs) > 0 {
		t.Fatalf("the configuration is wrong: %v", errs)
	}
	layer := webhook.New(webhook.Options{Resources: resources{}})
	t.Cleanup(layer.Close)
	layer.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration})

	object := func(text string) explore.Request {
		return explore.Request{Operation: explore.Healthy, Object: exploretest.Object(t, text)}
	}
	const (
		foo = `{"apiVersion":"foo.example.com/v1alpha1","kind":"Foo","metadata":{"name":"f","namespace":"n","generation":2},`
		bar = `{"apiVersion":"bar.example.com/v1alpha1","kind":"Bar","metadata":{"name":"b"},`
	)
	retain := object(foo + `"spec":{"image":"x","assigned":{"a":"mine"}}}`)
	retain.Operation, retain.Observed = explore.Retaining, exploretest.Object(t, foo+`"spec":{"image":"old","assigned":{"a":"theirs","b":"node-1"}}}`)
	bare := object(foo + `"spec":{"image":"x"}}`)
	bare.Operation, bare.Observed = explore.Retaining, retain.Observed
	needs := object(bar + `"spec":{"foos":[{"namespace":"n","name":"f"}]}}`)
	needs.Operation = explore.Dependencies
	health := func(healthy bool, message string) func(*testing.T, explore.Answer) {
		return func(t *testing.T, a explore.Answer) {
			if a.Healthy != healthy || a.Message != message {
				t.Errorf("got %v %q: want %v %q", a.Healthy, a.Message, healthy, message)
			}
		}
	}
	spec := func(want map[string]any) func(*testing.T, explore.Answer) {
		return func(t *testing.T, a explore.Answer) {
			if diff := cmp.Diff(want, a.Object.Object["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	}
	exploretest.Run(t, layer,
		exploretest.Case{Name: "Foo is ready", Request: object(foo + `"status":{"phase":"Ready","observedGeneration":2}}`), Check: health(true, "")},
		exploretest.Case{Name: "Foo was not seen yet", Request: object(foo + `"status":{"phase":"Ready","observedGeneration":1}}`), Check: health(false, "its controller has not seen the last change yet")},
		exploretest.Case{Name: "Foo starts", Request: object(foo + `"status":{"phase":"Starting","observedGeneration":2}}`), Check: health(false, `its phase is "Starting"`)},
		exploretest.Case{Name: "Foo keeps what was assigned", Request: retain, Check: spec(map[string]any{"image": "x", "assigned": map[string]any{"a": "mine", "b": "node-1"}})},
		exploretest.Case{Name: "Foo keeps all that was assigned", Request: bare, Check: spec(map[string]any{"image": "x", "assigned": map[string]any{"a": "theirs", "b": "node-1"}})},
		exploretest.Case{Name: "Bar waits", Request: object(bar + `"status":{"message":"for something"}}`), Check: health(false, "for something")},
		exploretest.Case{Name: "Bar needs a Foo", Request: needs, Check: func(t *testing.T, a explore.Answer) {
			if diff := cmp.Diff([]v1alpha1.DependentObjectReference{{APIVersion: "foo.example.com/v1alpha1", Kind: "Foo", Namespace: "n", Name: "f"}}, a.Dependencies); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}},
	)
}
