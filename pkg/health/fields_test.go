package health

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestExplain checks that a message never has an empty half, such as a lone colon.
func TestExplain(t *testing.T) {
	for _, tc := range []struct{ name, reason, message, fallback, want string }{
		{"both", "Evicted", "no memory", "Failed", "Evicted: no memory"},
		{"only a message", "", "no memory", "Failed", "no memory"},
		{"only a reason", "Evicted", "", "Failed", "Evicted"},
		{"neither", "", "", "Failed", "Failed"},
	} {
		if got := explain(tc.reason, tc.message, tc.fallback); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := (condition{Type: "Failed", Status: corev1.ConditionTrue}).String(); got != "Failed" {
		t.Errorf("a condition without words is named by its type, got %q", got)
	}
}

// TestConditions checks that type and status decide together, and that the first of equal entries counts.
func TestConditions(t *testing.T) {
	all := conditions{
		{Type: "Ready", Status: corev1.ConditionFalse, Reason: "First"},
		{Type: "Ready", Status: corev1.ConditionTrue, Reason: "Second"},
		{Type: "Ready", Status: corev1.ConditionTrue, Reason: "Third"},
		{Type: "Synced", Status: corev1.ConditionUnknown},
	}
	for _, tc := range []struct {
		name, kind string
		status     corev1.ConditionStatus
		reason     string
		found      bool
	}{
		{"an earlier entry has another status", "Ready", corev1.ConditionTrue, "Second", true},
		{"the first entry", "Ready", corev1.ConditionFalse, "First", true},
		{"no entry has the status", "Ready", corev1.ConditionUnknown, "", false},
		{"no entry has the type", "ready", corev1.ConditionTrue, "", false},
	} {
		got, found := all.with(tc.kind, tc.status)
		if found != tc.found || got.Reason != tc.reason {
			t.Errorf("%s: got %+v (found %t)", tc.name, got, found)
		}
	}
	if all.isTrue("Synced") {
		t.Error("the status Unknown is not True")
	}
	if (conditions)(nil).isTrue("Ready") {
		t.Error("no conditions are not True")
	}
}

// TestCheckDeletion checks which values of metadata.deletionTimestamp say that an object is being deleted.
func TestCheckDeletion(t *testing.T) {
	for _, tc := range []struct {
		reason string
		value  any
		state  State
	}{
		{"a time", "2026-01-01T00:00:00Z", Progressing},
		{"no valid time still says that the object is being deleted", "soon", Progressing},
		{"another type", int64(5), Progressing},
		{"null says nothing", nil, Ready},
		{"an empty text says nothing", "", Ready},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "status": map[string]any{"phase": "Active"},
			"metadata": map[string]any{"deletionTimestamp": tc.value},
		}}
		if got := Check(object); got.State != tc.state {
			t.Errorf("%s: got %+v, want %s", tc.reason, got, tc.state)
		}
	}
	if got := Check(parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: [a]}")); got.State != Ready {
		t.Errorf("metadata of another type hold no deletion: got %+v", got)
	}
}

// TestMessagesOfAllRulesAreBounded checks that text of other controllers never makes a long message, whatever the rule.
func TestMessagesOfAllRulesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 4*maxMessage)
	for _, object := range []string{
		"{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: %s}}",
		"{apiVersion: v1, kind: Pod, status: {containerStatuses: [{name: %s, state: {waiting: {reason: ErrImagePull}}}]}}",
		"{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: 'True', message: %s}]}}",
		"{apiVersion: apps/v1, kind: Deployment, status: {conditions: [{type: ReplicaFailure, status: 'True', reason: %s}]}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: 'False', message: %s}]}}",
		"{apiVersion: kudo.dev/v1beta1, kind: Instance, status: {aggregatedStatus: {status: IN_PROGRESS, activePlanName: %s}}}",
		"{apiVersion: kudo.dev/v1beta1, kind: Instance, status: {aggregatedStatus: {status: COMPLETE}, queue: [{planName: %s}]}}",
	} {
		got := Check(parse(t, fmt.Sprintf(object, long)))
		if len(got.Message) > maxMessage || len(got.Message) < maxMessage/2 {
			t.Errorf("%s: the message has %d bytes", object, len(got.Message))
		}
		if strings.Contains(got.Message, "\uFFFD") {
			t.Errorf("%s: the message ends within a character: %q", object, got.Message)
		}
	}
}
