package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/test/apitest"
)

// webhooksWithCA is a webhook configuration whose clients trust a CA.
func webhooksWithCA(ca string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "kudo"},
		"webhooks": []any{map[string]any{"name": "a.kudo.dev", "clientConfig": map[string]any{"caBundle": ca}}},
	}}
}

// TestSkipUnchanged checks that a webhook configuration is written only if the write changes it: each write is an event for all
// who watch, and cert-controller writes after each event.
func TestSkipUnchanged(t *testing.T) {
	const read, write = "get ValidatingWebhookConfiguration kudo", "update ValidatingWebhookConfiguration kudo"
	for _, tc := range []struct {
		reason  string
		modify  func(*unstructured.Unstructured)
		another string
		refuse  bool
		want    []string
		err     bool
	}{
		{reason: "it is the same", want: []string{read}},
		{reason: "the CA has changed", modify: func(u *unstructured.Unstructured) { u.Object["webhooks"] = webhooksWithCA("new").Object["webhooks"] }, want: []string{read, write}},
		{reason: "a webhook was removed", modify: func(u *unstructured.Unstructured) { delete(u.Object, "webhooks") }, want: []string{read, write}},
		{reason: "another client has changed it meanwhile: the update reports the conflict", another: "theirs", want: []string{read, write}, err: true},
		{reason: "it cannot be read: the update is sent", refuse: true, want: []string{read, write}},
		{reason: "it does not exist: the update reports that", modify: func(u *unstructured.Unstructured) { u.SetName("absent") },
			want: []string{"get ValidatingWebhookConfiguration absent", "update ValidatingWebhookConfiguration absent"}, err: true},
	} {
		server := apitest.Start(t)
		wanted := server.Put(webhooksWithCA("old"))
		if tc.another != "" {
			server.Put(webhooksWithCA(tc.another))
		}
		if tc.modify != nil {
			tc.modify(wanted)
		}
		server.Before(func(r apitest.Request) (any, error) {
			if tc.refuse && r.Verb == "get" {
				return nil, errors.New("down")
			}
			return nil, nil
		})
		c := skipUnchangedClient{server.Client(), server.Client()}
		server.Requests()
		if err := c.Update(t.Context(), wanted); (err != nil) != tc.err {
			t.Errorf("%s: error %v", tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, server.Requests()); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestSkipUnchangedSecret checks that the Secret is written as it is: it is updated only when the certificate is new.
func TestSkipUnchangedSecret(t *testing.T) {
	server := apitest.Start(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kudo-system", Name: WebhookSecret}}
	server.Put(secret)
	c := skipUnchangedClient{server.Client(), server.Client()}
	server.Requests()
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"update Secret kudo-system/" + WebhookSecret}, server.Requests()); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
