package hub

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/test/env"
)

// kettles is a Config whose rules Karmada cannot run: they name fields, or call a function that Karmada's scripts lack.
const kettles = `apiVersion: config.kudo.dev/v1alpha1
kind: Config
metadata:
  name: kettles
spec:
  retentions:
  - apiVersion: kitchen.example.com/v1
    kind: Kettle
    fields: ["{.spec.lids[*].color}", "{.spec.node}"]
  explorations:
  - apiVersion: kitchen.example.com/v1
    kind: Kettle
    health: {field: "{.status.phase}", healthy: [Boils], failed: [Broken]}
    replicaLua: |
      local text = string.gsub("3x", "x", "")
      return tonumber(text), {resourceRequest = {cpu = "100m"}}
    componentsLua: |
      local name = string.gsub("lidx", "x", "")
      return {{name = name, replicas = 2}}
    replicaRevisingLua: |
      desiredObj.spec.cups = desiredReplica + 0 * #string.gsub("a", "a", "b")
      return desiredObj
    statusLua: |
      return {phase = string.gsub(observedObj.status.phase, "s$", "")}
    statusAggregatingLua: |
      desiredObj.status = {cups = 0, names = ""}
      for _, item in ipairs(statusItems) do
        desiredObj.status.cups = desiredObj.status.cups + item.status.cups
        desiredObj.status.names = desiredObj.status.names .. string.gsub(item.clusterName, "m", "M")
      end
      return desiredObj
    dependenciesLua: |
      local name = string.gsub("lids", "s", "")
      return {{apiVersion = "v1", kind = "Secret", namespace = desiredObj.metadata.namespace, name = name}}
`

// kettle is the object that is asked about.
const kettle = `{"apiVersion":"kitchen.example.com/v1","kind":"Kettle","metadata":{"name":"k","namespace":"team-a"},
"spec":{"cups":6,"lids":[{"name":"a","color":"red"},{"name":"b","color":"blue"}]},"status":{"phase":"Boils"}}`

// observedKettle is the object in a cluster.
const observedKettle = `{"apiVersion":"kitchen.example.com/v1","kind":"Kettle","metadata":{"name":"k","namespace":"team-a"},
"spec":{"cups":1,"node":"n1","lids":[{"name":"b","color":"grey"}]},"status":{"phase":"Boils"}}`

// answered maps each operation of Karmada's webhook protocol to a question and its answer: the fields that the request has beside the object,
// the fields that the response must have, and the object that the patch of the response must make.
var answered = map[string]struct{ more, want, patched string }{
	"InterpretReplica":    {`"replicas":0`, `{"replicas":3,"replicaRequirements":{"resourceRequest":{"cpu":"100m"}}}`, ""},
	"InterpretComponent":  {`"replicas":0`, `{"components":[{"name":"lid","replicas":2}]}`, ""},
	"InterpretStatus":     {`"replicas":0`, `{"rawStatus":{"phase":"Boil"}}`, ""},
	"InterpretHealth":     {`"replicas":0`, `{"healthy":true}`, ""},
	"InterpretDependency": {`"replicas":0`, `{"dependencies":[{"apiVersion":"v1","kind":"Secret","namespace":"team-a","name":"lid"}]}`, ""},
	"ReviseReplica":       {`"replicas":4`, "", strings.Replace(kettle, `"cups":6`, `"cups":4`, 1)},
	"Retain": {`"replicas":0,"observedObject":` + observedKettle, "",
		strings.NewReplacer(`"blue"`, `"grey"`, `"cups":6`, `"cups":6,"node":"n1"`).Replace(kettle)},
	"AggregateStatus": {`"replicas":0,"aggregatedStatus":[{"clusterName":"m1","applied":true,"health":"Healthy","status":{"cups":4}},` +
		`{"clusterName":"m2","applied":true,"health":"Healthy","status":{"cups":2}}]`, "",
		strings.Replace(kettle, `{"phase":"Boils"}`, `{"cups":6,"names":"M1M2"}`, 1)},
}

// checkAnswers checks C20 and C22: Karmada takes the configuration that convert writes for the webhook of the hub, and at the address in it
// the running manager answers each operation over TLS in the format of the protocol, as the chain of the rules does. What is asked of other
// kinds is refused with a reason.
func checkAnswers(t *testing.T, p *planes) {
	folder := t.TempDir()
	rules := filepath.Join(folder, "kettles.yaml")
	env.Must(t, os.WriteFile(rules, []byte(kettles), 0o600))
	configuration := convertKettles(t, p, rules, folder)
	ask := asker(t, configuration)
	refused := func(reason, body, want string) {
		t.Helper()
		response := ask(t, body)
		status, _ := response["status"].(map[string]any)
		message, _ := status["message"].(string)
		if response["successful"] != false || response["uid"] != "u" || len(response) != 3 || !strings.Contains(message, want) {
			t.Errorf("%s: %v, want %q", reason, response, want)
		}
	}
	wait(t, "the manager has read the Configs", func() error {
		if response := ask(t, question("InterpretHealth", kettle, `"replicas":0`)); strings.Contains(fmt.Sprint(response), "have not been read yet") {
			return fmt.Errorf("%v", response)
		}
		return nil
	})
	refused("the hub does not have the Config yet", question("InterpretHealth", kettle, `"replicas":0`), "no Config of this hub names it")
	config := &configv1alpha1.Config{}
	env.Must(t, yaml.UnmarshalStrict([]byte(kettles), config))
	env.Must(t, p.hub.Create(t.Context(), config))
	t.Cleanup(func() { _ = p.hub.Delete(t.Context(), config) })
	wait(t, "the manager answers by the Config", func() error {
		if response := ask(t, question("InterpretHealth", kettle, `"replicas":0`)); response["successful"] != true {
			return fmt.Errorf("%v", response)
		}
		return nil
	})
	for _, operation := range operationsOf(t, configuration) {
		t.Run(operation, func(t *testing.T) {
			checkAnswer(t, operation, ask(t, question(operation, kettle, answered[operation].more)))
		})
	}
	refused("an operation that Karmada never asks", question("Prune", kettle, `"replicas":0`), `operation "Prune" is unknown`)
	refused("a kind without a Config, which the bundled rules know", question("InterpretHealth",
		`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"c"}}`, `"replicas":0`), "no Config of this hub names it")
	refused("an object that is none", question("InterpretHealth", strings.Replace(kettle, `"kind":"Kettle"`, `"kind":"Pot"`, 1), `"replicas":0`),
		"they must be the same")
	wait(t, "the manager writes the status of the Config", func() error {
		got, err := get(p.hub, &configv1alpha1.Config{}, "", "kettles")
		if err == nil && (len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Status != "True") {
			err = fmt.Errorf("conditions %+v", got.Status.Conditions)
		}
		return err
	})
	env.Must(t, p.hub.Delete(t.Context(), config))
	wait(t, "the manager does not answer for a deleted Config", func() error {
		if response := ask(t, question("InterpretHealth", kettle, `"replicas":0`)); response["successful"] != false {
			return fmt.Errorf("%v", response)
		}
		return nil
	})
}

// convertKettles converts the Config for the webhook of the hub, and creates the result on the hub, strictly.
func convertKettles(t *testing.T, p *planes, rules, folder string) *unstructured.Unstructured {
	t.Helper()
	secret := env.Read(t, p.hub, &corev1.Secret{}, "kudo-system", "kudo-webhook-server-secret")
	bundle := filepath.Join(folder, "ca.crt")
	env.Must(t, os.WriteFile(bundle, secret.Data["ca.crt"], 0o600))
	out := p.hub.MustKudo(t, 0, "explore", "convert", "--to", "karmada", "--strict", rules, "--webhook-ca-file", bundle, "--webhook-url",
		"https://"+strings.Replace(p.manager.Address, "127.0.0.1", "localhost", 1))
	configuration := &unstructured.Unstructured{}
	env.Must(t, yaml.UnmarshalStrict([]byte(out), &configuration.Object))
	strict := client.WithFieldValidation(p.hub.Cluster, client.FieldValidation("Strict"))
	env.Must(t, strict.Create(t.Context(), configuration))
	t.Cleanup(func() { _ = p.hub.Delete(t.Context(), configuration) })
	return configuration
}

// hook returns the one webhook of a configuration.
func hook(t *testing.T, configuration *unstructured.Unstructured) map[string]any {
	t.Helper()
	hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil || len(hooks) != 1 {
		t.Fatalf("%v: %v", configuration.Object, err)
	}
	return hooks[0].(map[string]any)
}

// operationsOf returns the operations of a configuration: all that the protocol has.
func operationsOf(t *testing.T, configuration *unstructured.Unstructured) []string {
	t.Helper()
	rules, _, _ := unstructured.NestedSlice(hook(t, configuration), "rules")
	operations, _, err := unstructured.NestedStringSlice(rules[0].(map[string]any), "operations")
	if err != nil || len(rules) != 1 || len(operations) != len(answered) || slices.Contains(operations, "Prune") {
		t.Fatalf("the rules %v: want one, for %d operations: %v", rules, len(answered), err)
	}
	return operations
}

// asker returns a func that asks the webhook of a configuration as Karmada does, with no credentials, and returns the response.
func asker(t *testing.T, configuration *unstructured.Unstructured) func(t *testing.T, body string) map[string]any {
	t.Helper()
	url, _, _ := unstructured.NestedString(hook(t, configuration), "clientConfig", "url")
	coded, _, _ := unstructured.NestedString(hook(t, configuration), "clientConfig", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(coded)
	env.Must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) || !strings.HasSuffix(url, "/karmada/v1alpha1") {
		t.Fatalf("the webhook is at %q, with the bundle %q", url, bundle)
	}
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(c.CloseIdleConnections)
	return func(t *testing.T, body string) map[string]any {
		t.Helper()
		answer, err := c.Post(url, "application/json", strings.NewReader(body))
		env.Must(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		env.Must(t, err)
		var document struct {
			APIVersion, Kind string
			Response         map[string]any
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&document); err != nil || answer.StatusCode != http.StatusOK ||
			document.APIVersion != "config.karmada.io/v1alpha1" || document.Kind != "ResourceInterpreterContext" {
			t.Fatalf("HTTP %d, %s: %v", answer.StatusCode, text, err)
		}
		return document.Response
	}
}

// question returns a request of Karmada about an object, whose kind in the request is that of a Kettle, or the object's own.
func question(operation, object, more string) string {
	kind := `{"group":"kitchen.example.com","version":"v1","kind":"Kettle"}`
	if strings.Contains(object, "cert-manager.io") {
		kind = `{"group":"cert-manager.io","version":"v1","kind":"Certificate"}`
	}
	return fmt.Sprintf(`{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","request":{"uid":"u","kind":%s,"name":"k",`+
		`"namespace":"team-a","operation":%q,"object":%s,%s}}`, kind, operation, object, more)
}

// checkAnswer checks the response to an operation.
func checkAnswer(t *testing.T, operation string, response map[string]any) {
	t.Helper()
	row := answered[operation]
	if response["uid"] != "u" || response["successful"] != true {
		t.Fatalf("%v", response)
	}
	delete(response, "uid")
	delete(response, "successful")
	if row.patched == "" {
		if diff := cmp.Diff(object(t, row.want), response); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		return
	}
	coded, _ := response["patch"].(string)
	text, err := base64.StdEncoding.DecodeString(coded)
	if err != nil || response["patchType"] != "JSONPatch" || len(response) != 2 {
		t.Fatalf("%v: %v", response, err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	env.Must(t, err)
	got, err := patch.Apply([]byte(kettle))
	env.Must(t, err)
	if diff := cmp.Diff(object(t, row.patched), object(t, string(got))); diff != "" {
		t.Errorf("the patch %s: -want +got:\n%s", text, diff)
	}
}

// object reads a JSON object.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	env.Must(t, json.Unmarshal([]byte(text), &out))
	return out
}
