package karmada

import (
	"encoding/json"
	"math"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/text"
)

// apiVersion and kind of the documents in both directions.
const (
	apiVersion   = "config.karmada.io/v1alpha1"
	envelopeKind = "ResourceInterpreterContext"
)

// envelope is a ResourceInterpreterContext: one way it has a request, and the other way a response.
type envelope struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

// request is one question about one object.
type request struct {
	UID  types.UID `json:"uid"`
	Kind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"kind"`
	Operation string               `json:"operation"`
	Object    runtime.RawExtension `json:"object"`
	// ObservedObject is there for Retain.
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`
	// Replicas are always there, and count for ReviseReplica only.
	Replicas *int64 `json:"replicas,omitempty"`
	// AggregatedStatus is there for AggregateStatus, if something is known of a copy.
	AggregatedStatus []v1alpha1.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// response is the answer. Of the fields below Status, it has those of its operation.
type response struct {
	UID        types.UID `json:"uid"`
	Successful bool      `json:"successful"`
	// Status is there unless the request is answered.
	Status *status `json:"status,omitempty"`

	// Patch is a JSON patch (RFC 6902) of the object of the request. Without it and its type, nothing is to be changed.
	Patch     []byte `json:"patch,omitempty"`
	PatchType string `json:"patchType,omitempty"`

	Replicas            *int32                               `json:"replicas,omitempty"`
	ReplicaRequirements *v1alpha1.ReplicaRequirements        `json:"replicaRequirements,omitempty"`
	Components          *[]v1alpha1.Component                `json:"components,omitempty"`
	RawStatus           any                                  `json:"rawStatus,omitempty"`
	Healthy             *bool                                `json:"healthy,omitempty"`
	Dependencies        *[]v1alpha1.DependentObjectReference `json:"dependencies,omitempty"`
}

// status says why a request is not answered.
type status struct {
	Message string `json:"message,omitempty"`
	Code    int32  `json:"code,omitempty"`
}

// operations are those of the protocol. Prune is declared by Karmada, and never asked.
var operations = map[string]explore.Operation{
	"InterpretReplica": explore.Replica, "InterpretComponent": explore.Components, "ReviseReplica": explore.ReplicaRevising,
	"Retain": explore.Retaining, "AggregateStatus": explore.StatusAggregating, "InterpretStatus": explore.Status,
	"InterpretHealth": explore.Healthy, "InterpretDependency": explore.Dependencies,
}

// parse reads a request. If it is malformed, what has been read is returned beside the error.
func parse(body []byte) (*request, error) {
	var document envelope
	err := json.Unmarshal(body, &document)
	asked := document.Request
	if asked == nil {
		asked = &request{}
	}
	switch {
	case err != nil:
		return asked, refuse(http.StatusBadRequest, "read the %s: %w", envelopeKind, err)
	case document.APIVersion != apiVersion || document.Kind != envelopeKind:
		return asked, refuse(http.StatusBadRequest, "the document is %s of %s: want %s of %s", text.Quote(document.Kind, 64),
			text.Quote(document.APIVersion, 64), envelopeKind, apiVersion)
	case document.Request == nil || asked.UID == "":
		return asked, refuse(http.StatusBadRequest, "the %s has no request with a uid", envelopeKind)
	}
	return asked, nil
}

// gvk returns the kind that is asked about.
func (r *request) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind}
}

// question returns what a chain is asked.
func (r *request) question(operation explore.Operation) (explore.Request, error) {
	question := explore.Request{Operation: operation}
	var err error
	if question.Object, err = decode("object", &r.Object); err != nil {
		return question, err
	}
	if is := question.Object.GroupVersionKind(); is != r.gvk() {
		return question, refuse(http.StatusBadRequest, "request.kind is %s, and request.object is of %s: they must be the same",
			text.Quote(r.gvk().String(), 256), text.Quote(is.String(), 256))
	}
	switch operation {
	case explore.Retaining:
		question.Observed, err = decode("observedObject", r.ObservedObject)
	case explore.ReplicaRevising:
		if r.Replicas == nil || *r.Replicas < 0 || *r.Replicas > math.MaxInt32 {
			return question, refuse(http.StatusBadRequest, "request.replicas must be a number from 0 to %d", math.MaxInt32)
		}
		question.Replicas = int32(*r.Replicas)
	case explore.StatusAggregating:
		question.Items = r.AggregatedStatus
	}
	return question, err
}

// decode reads an object, in which whole numbers are int64.
func decode(field string, raw *runtime.RawExtension) (*unstructured.Unstructured, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, refuse(http.StatusBadRequest, "request.%s is missing", field)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(raw.Raw, &fields); err != nil {
		return nil, refuse(http.StatusBadRequest, "read request.%s: %w", field, err)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}
