package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestServices checks C67: only Services that configurations name are watched, each by its name, and a change of one is told.
func TestServices(t *testing.T) {
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: gen.Meta("x", name), Spec: corev1.ServiceSpec{ClusterIP: ip}}
	}
	server := apitest.Start(t, service("hook", "10.0.0.1"), service("other", "10.0.0.2"))
	set, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan types.NamespacedName, 16)
	s := &services{ctx: t.Context(), set: set, changed: func(service types.NamespacedName) { changed <- service }, watches: map[types.NamespacedName]*serviceWatch{}}
	ip := func(name string) string {
		got, err := s.Get(t.Context(), "x", name)
		if apierrors.IsNotFound(err) {
			return "none"
		}
		if err != nil {
			t.Fatal(err)
		}
		return got.Spec.ClusterIP
	}
	hook := types.NamespacedName{Namespace: "x", Name: "hook"}
	s.keep([]types.NamespacedName{hook})
	if a, b, c := ip("hook"), ip("other"), ip("absent"); a != "10.0.0.1" || b != "10.0.0.2" || c != "none" {
		t.Errorf("addresses %s, %s, %s", a, b, c)
	}
	if len(s.watches) != 1 || s.watches[hook] == nil {
		t.Fatalf("%d watches, want one of the Service that is named", len(s.watches))
	}
	w := s.watches[hook]
	apitest.Eventually(t, "a first list of the watch", w.informer.HasSynced)
	if listed := len(w.informer.GetStore().List()); listed != 1 {
		t.Errorf("the watch of one Service has %d", listed)
	}
	server.Put(service("hook", "10.0.0.3"))
	apitest.Eventually(t, "the new address, which is told", func() bool { return ip("hook") == "10.0.0.3" && len(changed) == 1 })
	server.Remove(service("hook", ""))
	apitest.Eventually(t, "no address, which is told", func() bool { return ip("hook") == "none" && len(changed) == 2 })
	s.keep(nil)
	apitest.Eventually(t, "the end of the watch", w.informer.IsStopped)
	if len(s.watches) != 0 || ip("other") != "10.0.0.2" || len(s.watches) != 0 {
		t.Errorf("%d watches of Services that are not named", len(s.watches))
	}
}
