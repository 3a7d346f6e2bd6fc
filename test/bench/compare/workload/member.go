package workload

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// member is a cluster that is played: an API server inside of the process, whose Instances are ready at once.
type member struct {
	name, url string
	ca        []byte
	server    *apitest.Server
}

func startMember(t testing.TB, name string) *member {
	m := &member{name: name, server: apitest.Start(t)}
	m.server.Before(m.answer)
	front := httptest.NewUnstartedServer(m.server)
	front.EnableHTTP2, front.Config.ErrorLog = true, log.New(io.Discard, "", 0) // it would say that the hub ends connections
	front.StartTLS()
	t.Cleanup(func() {
		front.CloseClientConnections() // ends watches
		front.Close()
	})
	m.url, m.ca = front.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return m
}

// answer is an apitest.Hook. It writes an Instance, and after it the status that a manager would.
func (m *member) answer(r apitest.Request) (any, error) {
	switch {
	case r.String() == "/readyz":
		return strings.NewReader("ok"), nil
	case r.Verb != "apply" || r.Kind != "Instance":
		return nil, nil
	}
	next := &unstructured.Unstructured{}
	if err := json.Unmarshal(r.Body, &next.Object); err != nil {
		return nil, err
	}
	live := m.server.Get(next)
	if live == nil {
		live = &unstructured.Unstructured{}
	}
	next.SetUID(live.GetUID())
	next.SetGeneration(live.GetGeneration() + 1)
	if status, found := live.Object["status"]; found {
		next.Object["status"] = status
	}
	answer := m.server.Put(next)
	next.SetUID(answer.GetUID())
	next.Object["status"] = statusOf(next.GetGeneration())
	m.server.Put(next)
	return answer, nil
}

// statusOf returns the status of an Instance whose plan has ended.
func statusOf(generation int64) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	return map[string]any{
		"observedGeneration": generation,
		"aggregatedStatus":   map[string]any{"status": string(v1beta1.Complete)},
		"planStatus":         map[string]any{v1beta1.DeployPlan: map[string]any{"name": v1beta1.DeployPlan, "status": string(v1beta1.Complete), "revision": generation}},
		"conditions": []any{map[string]any{"type": v1beta1.ReadyCondition, "status": "True", "reason": v1beta1.ReasonResourcesReady,
			"observedGeneration": generation, "lastTransitionTime": now, "message": "played"}},
	}
}

// asked returns how many requests the cluster has had since the last call, but watches and discovery.
func (m *member) asked() int {
	return len(slices.DeleteFunc(m.server.Requests(), func(r string) bool { return strings.HasPrefix(r, "watch ") || strings.HasPrefix(r, "/") }))
}

// register makes a cluster known to a hub.
func (m *member) register(ctx context.Context, hub client.Client) error {
	secret := &corev1.Secret{ObjectMeta: gen.Meta(profileNamespace, m.name), StringData: map[string]string{"server": m.url, "token": "played"}}
	if err := hub.Create(ctx, secret); err != nil {
		return err
	}
	profile, status := gen.ClusterProfile(profileNamespace, m.name, m.url, m.ca)
	if err := hub.Create(ctx, profile); err != nil {
		return err
	}
	profile.Object["status"] = status
	return hub.Status().Update(ctx, profile)
}

// profileDefinition defines ClusterProfile as far as a hub reads it.
const profileDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterprofiles.multicluster.x-k8s.io}
spec:
  group: multicluster.x-k8s.io
  names: {kind: ClusterProfile, plural: clusterprofiles, singular: clusterprofile, listKind: ClusterProfileList}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
