package controllers

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestQuotaLookup (C64): whether a namespace has ResourceQuotas is known by a watch, which asks once for all namespaces.
func TestQuotaLookup(t *testing.T) {
	server := apitest.Start(t, &corev1.ResourceQuota{ObjectMeta: gen.Meta("full", "small")})
	metadata, err := cache.New(server.Config(), cache.Options{Mapper: server.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	mayHave := quotaLookup(metadata)
	has := func(namespace string) bool {
		got, err := mayHave(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if !has("empty") {
		t.Error("a namespace has no quotas before any were listed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- metadata.Start(ctx) }()
	apitest.Eventually(t, "a namespace without quotas", func() bool { return !has("empty") })
	if !has("full") {
		t.Error("a namespace with a quota has none")
	}
	server.Put(&corev1.ResourceQuota{ObjectMeta: gen.Meta("empty", "new")})
	apitest.Eventually(t, "a new quota", func() bool { return has("empty") })
	asked := server.Requests()
	asked = slices.DeleteFunc(asked, func(r string) bool { return !strings.Contains(strings.ToLower(r), "resourcequota") })
	if len(asked) > 2 {
		t.Errorf("requests %q, want a list and a watch", asked)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
