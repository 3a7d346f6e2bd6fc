package karmada

import (
	"encoding/pem"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

const path = "/karmada/v1alpha1"

// byFields is a Config with a rule by fields, and a script of the status. Karmada can run the script only.
func byFields() v1alpha1.Config {
	c := v1alpha1.Config{}
	c.Name = "c"
	c.Spec.Retentions = []v1alpha1.LocalValueRetention{
		{APIVersion: "g.example.com/v1", Kind: "Kettle", Fields: []string{"{.spec.lid}"}, RetentionLua: "return desiredObj"},
		{APIVersion: "v1", Kind: "Pod", Fields: []string{"{.spec.nodeName}"}},
	}
	c.Spec.Explorations = []v1alpha1.Exploration{
		{APIVersion: "g.example.com/v1", Kind: "Kettle", StatusLua: "return observedObj.status", PackingLua: "return desiredObj",
			Health: &v1alpha1.HealthRule{Field: "{.status.phase}", Healthy: []string{"Done"}}, ReplicaLua: "return #string.gsub('a', 'b', 'c')"},
	}
	return c
}

// TestWebhookConfigurations checks C20: with an endpoint, Karmada asks the hub for what its scripts cannot say, and for nothing else.
func TestWebhookConfigurations(t *testing.T) {
	endpoint, err := NewURL("https://hub.example.org:9443/", path)
	if err != nil {
		t.Fatal(err)
	}
	endpoint.CABundle = []byte("PEM")
	documents, warnings, err := FromConfigs([]v1alpha1.Config{byFields()}, endpoint)
	if err != nil || len(documents) != 3 {
		t.Fatalf("%d documents: %v", len(documents), err)
	}
	if diff := cmp.Diff([]string{"Config/c: spec.explorations[0].packingLua is left out: Karmada has no such operation"}, warnings); diff != "" {
		t.Errorf("the warnings (-want +got):\n%s", diff)
	}
	if keys := scriptsOf(documents[0]); documents[0]["kind"] != Kind || len(keys) != 1 || keys["statusReflection"] == nil {
		t.Errorf("the customization %v: want the status only", documents[0])
	}
	configuration := func(name, group, kind string, operations ...any) map[string]any {
		return map[string]any{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration", "metadata": map[string]any{"name": name},
			"webhooks": []any{map[string]any{
				"name": "explore.kudo.dev", "timeoutSeconds": int64(10), "interpreterContextVersions": []any{"v1alpha1"},
				"clientConfig": map[string]any{"url": "https://hub.example.org:9443/karmada/v1alpha1", "caBundle": "UEVN"},
				"rules":        []any{map[string]any{"operations": operations, "apiGroups": []any{group}, "apiVersions": []any{"v1"}, "kinds": []any{kind}}},
			}}}
	}
	want := []map[string]any{configuration("kettle.v1.g.example.com", "g.example.com", "Kettle", "InterpretHealth", "InterpretReplica", "Retain"),
		configuration("pod.v1", "", "Pod", "Retain")}
	if diff := cmp.Diff(want, documents[1:]); diff != "" {
		t.Errorf("the configurations (-want +got):\n%s", diff)
	}
	if errs := validation.IsFullyQualifiedName(field.NewPath("name"), webhookName); len(errs) > 0 {
		t.Error(errs)
	}
	if _, warnings, err = FromConfigs([]v1alpha1.Config{byFields()}, nil); err != nil || len(warnings) != 5 {
		t.Errorf("without an endpoint, each of these rules is a warning: %q, %v", warnings, err)
	}
}

// TestAllOperations checks C20: each operation that Karmada has can be asked of the hub, and Prune, which its webhooks refuse, is none.
func TestAllOperations(t *testing.T) {
	c := v1alpha1.Config{}
	c.Name = "c"
	const body = "return string.gsub('a', 'b', 'c')"
	c.Spec.Explorations = []v1alpha1.Exploration{{APIVersion: "g/v1", Kind: "K", ComponentsLua: body, DependenciesLua: body, HealthLua: body, ReplicaLua: body,
		ReplicaRevisingLua: body, RetainingLua: body, StatusAggregatingLua: body, StatusLua: body}}
	endpoint, err := NewService("a/b", path)
	if err != nil {
		t.Fatal(err)
	}
	documents, warnings, err := FromConfigs([]v1alpha1.Config{c}, endpoint)
	if err != nil || len(warnings) > 0 || len(documents) != 1 {
		t.Fatalf("%d documents, %q, %v", len(documents), warnings, err)
	}
	hook := documents[0]["webhooks"].([]any)[0].(map[string]any)
	want := []any{"AggregateStatus", "InterpretComponent", "InterpretDependency", "InterpretHealth", "InterpretReplica", "InterpretStatus", "Retain", "ReviseReplica"}
	if diff := cmp.Diff(want, hook["rules"].([]any)[0].(map[string]any)["operations"]); diff != "" {
		t.Errorf("the operations (-want +got):\n%s", diff)
	}
	service := map[string]any{"namespace": "a", "name": "b", "port": int64(443), "path": path}
	if diff := cmp.Diff(map[string]any{"service": service}, hook["clientConfig"]); diff != "" {
		t.Errorf("one of url and service (-want +got):\n%s", diff)
	}
}

// TestRulesOfOneKind checks C20: rules of several Configs for a kind become one customization, and two for one operation are refused.
func TestRulesOfOneKind(t *testing.T) {
	config := func(name, kind string, e v1alpha1.Exploration) v1alpha1.Config {
		c := v1alpha1.Config{}
		c.Name = name
		e.APIVersion, e.Kind = "g/v1", kind
		c.Spec.Explorations = []v1alpha1.Exploration{e}
		return c
	}
	health := config("a", "K", v1alpha1.Exploration{HealthLua: "return true"})
	documents, _, err := FromConfigs([]v1alpha1.Config{health, config("b", "K", v1alpha1.Exploration{StatusLua: "return nil"})}, nil)
	if err != nil || len(documents) != 1 || len(scriptsOf(documents[0])) != 2 {
		t.Errorf("%v, %v", documents, err)
	}
	endpoint := &Endpoint{url: "https://a"}
	for reason, row := range map[string]struct {
		other v1alpha1.Config
		want  string
	}{
		"the same operation by a script":  {config("b", "K", v1alpha1.Exploration{HealthLua: "return false"}), "Config/b: ExploreHealthy of g/v1 K has a rule already: leave one of them"},
		"the same operation by a webhook": {config("b", "K", v1alpha1.Exploration{Health: &v1alpha1.HealthRule{}}), "Config/b: ExploreHealthy of g/v1 K has a rule already"},
		"names that differ in case":       {config("b", "k", v1alpha1.Exploration{StatusLua: "return nil"}), "Config/b: kinds K and k of g/v1 differ in case only"},
	} {
		if _, _, err := FromConfigs([]v1alpha1.Config{health, row.other}, endpoint); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestEndpoints checks C19 and C20: an endpoint that Karmada would refuse is refused, and secrets of a URL are not repeated.
func TestEndpoints(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"https://hub.example.org", "https://hub.example.org" + path}, {"https://10.0.0.1:9443/kudo/", "https://10.0.0.1:9443/kudo" + path},
		{"http://hub.example.org", ""}, {"hub.example.org", ""}, {"https://", ""}, {"https://u:geheim@hub", ""}, {"https://u:geheim@hub:x", ""}, {"https://hub?a", ""}, {"https://hub?", ""},
		{"https://hub#", ""}, {"https://hub#a", ""}, {"https://hub:x", ""}, {"", ""},
	} {
		e, err := NewURL(row.text, path)
		if (err == nil) != (row.want != "") || err == nil && e.clientConfig()["url"] != row.want {
			t.Errorf("%s: %+v, %v, want %q", row.text, e, err, row.want)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("the error repeats a password: %v", err)
		}
	}
	for text, port := range map[string]int64{"a/b": 443, "a/b:8443": 8443, "a/b:0": 0, "a/b:65536": 0, "a/b:": 0, "a/b:x": 0, "b": 0, "/b": 0, "a/": 0, "a/b/c": 0, "A/b": 0} {
		e, err := NewService(text, path)
		if (err == nil) != (port != 0) || err == nil && e.service["port"] != port {
			t.Errorf("%s: %+v, %v, want port %d", text, e, err, port)
		}
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
	for want, bundle := range map[string][]byte{"no certificate": nil, "no certificate in PEM": []byte("text"), `a block "PRIVATE KEY"`: key, "read certificate 1": broken} {
		if err := CheckBundle(bundle); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// FuzzEndpoints checks C20: of an endpoint that is taken, Karmada takes the URL or the Service, too.
func FuzzEndpoints(f *testing.F) {
	for _, seed := range []string{"https://hub:9443", "a/b:8443", "https://u@h?x#y", "-----BEGIN CERTIFICATE-----"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = CheckBundle([]byte(text))
		if e, err := NewURL(text, path); err == nil {
			u, err := url.Parse(e.url)
			if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasSuffix(u.Path, path) {
				t.Errorf("%q becomes %q", text, e.url)
			}
		}
		if e, err := NewService(text, path); err == nil {
			port := e.service["port"].(int64)
			if port < 1 || port > 65535 || slices.Contains([]any{"", nil}, e.service["namespace"]) || slices.Contains([]any{"", nil}, e.service["name"]) {
				t.Errorf("%q becomes %v", text, e.service)
			}
		}
	})
}
