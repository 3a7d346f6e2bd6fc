// Package hub checks that a hub places Instances on clusters, on three control planes: a hub with the definitions of Karmada, and two
// clusters. A player does what the controllers of Karmada do.
package hub

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

// plane is one control plane.
type plane struct {
	*env.Env
	*env.Cluster
}

// planes are a hub with its manager, and clusters with theirs.
type planes struct {
	hub     plane
	members map[string]plane
	manager *env.HubManager
	player  *player
	faults  faulter
	// grant lets the manager read the sources of values in a namespace of the hub; nil if it need not.
	grant func(t *testing.T, namespace string)
}

// faulter keeps the engine of a hub from its clusters.
type faulter interface {
	// cut cuts a cluster off, or connects it again.
	cut(member string)
	// disturb makes another fault of the engine, or ends it.
	disturb()
	// repair ends all faults.
	repair()
}

// startPlanes brings the control planes up. They go with the test.
func startPlanes(t *testing.T) *planes {
	t.Helper()
	ctrllog.SetLogger(zap.New())
	definitions := corpus.Karmada(t)
	p := &planes{members: map[string]plane{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := func(name string, up func(...string) (*env.Env, error), args ...string) {
		defer wg.Done()
		e, err := up(append([]string{"--profile", "api"}, args...)...)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(e.Stop)
		c, err := e.Connect()
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if name == "hub" {
			p.hub = plane{e, c}
		} else {
			p.members[name] = plane{e, c}
		}
	}
	wg.Add(3)
	go start("hub", env.StartBare)
	go start("m1", env.Start, "--privileged")
	go start("m2", env.Start, "--privileged")
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	p.hub.Define(t, []byte(corpus.KarmadaCluster))
	p.hub.DefineFiles(t, definitions, "policy/*.yaml", "work/*.yaml", "config/*.yaml")
	p.manager = p.hub.NewHubManager(t)
	p.player = startPlayer(t, p)
	p.faults = p.player
	p.manager.Start(t)
	return p
}

// newNamespace makes a namespace of the same name on all planes.
func (p *planes) newNamespace(t *testing.T) string {
	t.Helper()
	name := p.hub.NewBareNamespace(t)
	for _, member := range p.members {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		ns.SetName(name)
		env.Must(t, member.Create(t.Context(), ns))
		t.Cleanup(func() { _ = member.Delete(context.Background(), ns) })
	}
	return name
}

// wait waits until a condition on something that is read again and again holds.
func wait(t *testing.T, what string, holds func() error) {
	t.Helper()
	env.Eventually(t, what, func() string {
		if err := holds(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// get reads an object, or returns an error that names it.
func get[T client.Object](c client.Reader, obj T, namespace, name string) (T, error) {
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		return obj, fmt.Errorf("get %s: %w", name, err)
	}
	return obj, nil
}
