// Package server is for people who write a webhook for kudo's explore operations: it decodes reviews, makes patches that
// leave alone what the webhook does not know, and completes responses.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// maxRequest is the size of the largest review that is read, in bytes: two objects at the size limit of etcd, and their
// statuses.
const maxRequest = 16 << 20

// Func answers one operation. Make the response by Healthy, Failed, Patch, Dependencies, Replicas, Components or Status; uid is filled in.
// An error refuses to answer: what depends on the answer waits, and shows the error's text to users. Func is called by
// several goroutines at once. The context ends when kudo stops waiting.
type Func func(ctx context.Context, r *Request) (*v1alpha1.ExploreResponse, error)

// Operations are the functions of a webhook, which is an http.Handler.
type Operations map[v1alpha1.OperationType]Func

// Request is what kudo asks.
type Request struct {
	v1alpha1.ExploreRequest
}

// Decode reads the object into a struct or an *unstructured.Unstructured, or a map, in which whole numbers are int64.
func (r *Request) Decode(into any) error { return decode("object", r.Object.Raw, into) }

// DecodeObserved reads the object as it is in the cluster, which ExploreRetaining has, as Decode does.
func (r *Request) DecodeObserved(into any) error {
	if r.ObservedObject == nil {
		return fmt.Errorf("decode request.observedObject of %s: there is none", r.Operation)
	}
	return decode("observedObject", r.ObservedObject.Raw, into)
}

func decode(field string, raw []byte, into any) error {
	var err error
	switch into := into.(type) {
	case *map[string]any:
		err = utiljson.Unmarshal(raw, into)
	default:
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("decode request.%s: %w", field, err)
	}
	return nil
}

// Healthy answers ExploreHealthy. The message says what an unhealthy object waits for; it may be empty.
func Healthy(healthy bool, message string) *v1alpha1.ExploreResponse {
	response := &v1alpha1.ExploreResponse{Healthy: &healthy}
	if message != "" {
		response.Result = &metav1.Status{Message: message}
	}
	return response
}

// Failed answers ExploreHealthy for an object that does not become healthy by waiting: a plan that waits for it ends with the message.
func Failed(message string) *v1alpha1.ExploreResponse {
	response := Healthy(false, message)
	response.Health = v1alpha1.HealthFailed
	return response
}

// Dependencies answers ExploreDependencies; none is an answer too.
func Dependencies(dependencies ...v1alpha1.DependentObjectReference) *v1alpha1.ExploreResponse {
	return &v1alpha1.ExploreResponse{Dependencies: dependencies}
}

// Replicas answers ExploreReplica. Requirements of a replica may be nil.
func Replicas(replicas int32, requirements *v1alpha1.ReplicaRequirements) *v1alpha1.ExploreResponse {
	return &v1alpha1.ExploreResponse{Replicas: &replicas, ReplicaRequirements: requirements}
}

// Components answers ExploreComponents; none is an answer too.
func Components(components ...v1alpha1.Component) *v1alpha1.ExploreResponse {
	return &v1alpha1.ExploreResponse{Components: components}
}

// Status answers ExploreStatus; nil says that the object has none.
func Status(status any) (*v1alpha1.ExploreResponse, error) {
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	return &v1alpha1.ExploreResponse{Status: &runtime.RawExtension{Raw: raw}}, nil
}

// ServeHTTP implements http.Handler. Serve it over TLS: kudo asks in no other way.
func (o Operations) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	review, code, err := read(w, request)
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	response := o.answer(request.Context(), &Request{*review.Request})
	response.UID = review.Request.UID
	text, err := json.Marshal(&v1alpha1.ExploreReview{TypeMeta: review.TypeMeta, Response: response})
	if err != nil {
		text, err = json.Marshal(&v1alpha1.ExploreReview{TypeMeta: review.TypeMeta, Response: refuse(review.Request.UID, err)})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // who asked may be gone
}

// read reads a review that has a request.
func read(w http.ResponseWriter, request *http.Request) (*v1alpha1.ExploreReview, int, error) {
	if request.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("method %s: want POST", request.Method)
	}
	if kind, _, err := mime.ParseMediaType(request.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType, errors.New("want Content-Type application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxRequest))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the review has more than %d bytes", large.Limit)
	case err != nil:
		return nil, http.StatusBadRequest, errors.New("the review was cut off")
	}
	review := &v1alpha1.ExploreReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("no ExploreReview: %w", err)
	}
	want := v1alpha1.GroupVersion.String()
	if review.APIVersion != want || review.Kind != "ExploreReview" || review.Request == nil || review.Request.UID == "" {
		return nil, http.StatusBadRequest, fmt.Errorf("want an ExploreReview of %s with a request and its uid", want)
	}
	return review, http.StatusOK, nil
}

// answer calls the function of the operation. A panic in it is a refusal, and the server continues.
func (o Operations) answer(ctx context.Context, r *Request) (response *v1alpha1.ExploreResponse) {
	defer func() {
		if p := recover(); p != nil {
			response = refuse(r.UID, fmt.Errorf("the webhook panicked: %v", p))
		}
	}()
	answer, known := o[r.Operation]
	if !known {
		return refuse(r.UID, fmt.Errorf("this webhook does not answer %s: it answers %v", r.Operation, o.names()))
	}
	response, err := answer(ctx, r)
	switch {
	case err != nil:
		return refuse(r.UID, err)
	case response == nil:
		return refuse(r.UID, errors.New("the webhook returned no response"))
	}
	return response
}

func (o Operations) names() []v1alpha1.OperationType {
	names := make([]v1alpha1.OperationType, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func refuse(uid types.UID, err error) *v1alpha1.ExploreResponse {
	return &v1alpha1.ExploreResponse{UID: uid, Result: &metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}}
}
