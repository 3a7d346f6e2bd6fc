// Package storedversions rewrites the objects of a CustomResourceDefinition in its storage version, page by page, and takes the older
// versions out of its status.storedVersions.
package storedversions

import (
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdcompat"
)

// DefinitionKind is that of CustomResourceDefinitions.
var DefinitionKind = apiextensionsv1.Kind("CustomResourceDefinition")

// Definition is what a migration reads of a CustomResourceDefinition.
type Definition struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// Generation changes with spec.
	Generation int64
	// Kind of the objects.
	Kind string
	// Resource is the one by which objects are read and written: that of the storage version, or of another one that a webhook converts. Its
	// version is empty if none of these is served.
	Resource schema.GroupVersionResource
	// Storage is the storage version.
	Storage string
	// Stored is status.storedVersions.
	Stored []string
	// Loss says which fields objects would lose by being rewritten; nil if none.
	Loss error
}

// Parse reads a CustomResourceDefinition.
func Parse(crd *unstructured.Unstructured) (Definition, error) {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, typed); err != nil {
		return Definition{}, fmt.Errorf("read CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	d := Definition{
		Name: typed.Name, UID: typed.UID, ResourceVersion: typed.ResourceVersion, Generation: typed.Generation,
		Kind: typed.Spec.Names.Kind, Stored: typed.Status.StoredVersions, Loss: crdcompat.CheckStorage(typed),
		Resource: schema.GroupVersionResource{Group: typed.Spec.Group, Resource: typed.Spec.Names.Plural},
	}
	converts := typed.Spec.Conversion != nil && typed.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	for _, version := range typed.Spec.Versions {
		if version.Storage {
			d.Storage = version.Name
		}
		// A version that is not the storage version prunes what only that one has, unless a webhook converts.
		if version.Served && (version.Storage || converts && d.Resource.Version == "") {
			d.Resource.Version = version.Name
		}
	}
	return d, nil
}

// Old returns the versions in which objects may be stored besides the storage version, or nil if there are none.
func (d Definition) Old() (old []string) {
	for _, version := range d.Stored {
		if version != d.Storage {
			old = append(old, version)
		}
	}
	return old
}

// Action is what a migration does next.
type Action string

const (
	// Finish follows when the objects are stored in the storage version.
	Finish Action = "finish"
	// Begin follows when there is no migration to this storage version.
	Begin Action = "begin"
	// Settle follows when an API server may still write the version before.
	Settle Action = "settle"
	// Wait follows when objects were refused, and the next attempt is not due.
	Wait Action = "wait"
	// Probe follows when the next attempt is due.
	Probe Action = "probe"
	// Rewrite follows when the next page is to be rewritten.
	Rewrite Action = "rewrite"
)

// settleTime is how long an API server may take to write a new storage version.
const settleTime = 5 * time.Second

// Next decides what the migration of a definition does next, and how long it waits for that:
//
//	storedVersions     migration                              next
//	the storage only   any                                    finish
//	others too         none                                   begin
//	others too         of another definition, generation,
//	                   storage version or of fewer versions   begin
//	others too         has been refused                       wait, then probe
//	others too         has just begun                         settle
//	others too         else                                   rewrite
//
// The generation stands for all changes of the storage version: one that has changed to and fro in between has stored objects in a
// version that the migration has passed.
func Next(d Definition, m *v1beta1.StoredVersionMigration, now time.Time) (Action, time.Duration) {
	old := d.Old()
	switch {
	case len(old) == 0:
		return Finish, 0
	case m == nil || m.UID != d.UID || m.Generation != d.Generation || m.To != d.Storage || !containsAll(m.From, old):
		return Begin, 0
	case m.RetryTime != nil:
		// A time that is further away than any wait was set by a clock that was corrected since.
		if left := m.RetryTime.Sub(now); left > 0 && left <= maxRetry {
			return Wait, left
		}
		return Probe, 0
	}
	if since := now.Sub(m.StartTime.Time); since >= 0 && since < settleTime {
		return Settle, settleTime - since
	}
	return Rewrite, 0
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// Start returns a migration that begins now. The attempts of one before, which may be nil, count on.
func Start(d Definition, before *v1beta1.StoredVersionMigration, now time.Time) v1beta1.StoredVersionMigration {
	m := v1beta1.StoredVersionMigration{
		Definition: d.Name, UID: d.UID, Generation: d.Generation, From: d.Old(), To: d.Storage, StartTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	if before != nil && before.UID == d.UID && before.Generation == d.Generation {
		m.Attempts = before.Attempts
	}
	return m
}

// Bounds of the time between two attempts.
const (
	minRetry = 15 * time.Second
	maxRetry = 10 * time.Minute
)

// retryDelay is the time until the next attempt.
func retryDelay(attempts int32) time.Duration {
	delay := minRetry
	for range attempts - 1 {
		if delay *= 2; delay >= maxRetry {
			return maxRetry
		}
	}
	return delay
}

// deferRetry ends an attempt.
func deferRetry(m *v1beta1.StoredVersionMigration, message string, now time.Time) {
	if m.Attempts++; m.Attempts < 0 {
		m.Attempts = 1
	}
	at := metav1.NewTime(now.Add(retryDelay(m.Attempts))).Rfc3339Copy()
	m.RetryTime, m.Continue, m.Message = &at, "", message
}
