package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/pods"
	"kudo.dev/kudo/pkg/text"
)

// Limits of what an answer holds.
const (
	// maxPatches is how many operations a patch has at most, as in the apiserver.
	maxPatches = 10000
	// maxWork bounds the operations of a patch times the bytes that they work on: each may move a whole list.
	maxWork = 1 << 31
	// maxMessage cuts messages of webhooks, in bytes.
	maxMessage = 1024
)

// refusal is the error of a webhook that was asked and says that it cannot answer. It is no failure of the webhook: the
// failure policy does not apply.
type refusal struct{ reason string }

func (r *refusal) Error() string { return "it refuses to answer: " + r.reason }

// readAnswer turns the body of a webhook's reply into an answer. Object is the request's, as it was sent.
func readAnswer(r explore.Request, object []byte, uid types.UID, body []byte) (explore.Answer, error) {
	response, err := readReview(body)
	if err != nil {
		return explore.Answer{}, err
	}
	if response.UID != uid {
		return explore.Answer{}, fmt.Errorf("response.uid is %.100q: it must be that of the request, %q", response.UID, uid)
	}
	message := ""
	if response.Result != nil {
		message = shorten(response.Result.Message)
		if response.Result.Status == metav1.StatusFailure {
			if message == "" {
				message = "it gives no reason (response.result.message)"
			}
			return explore.Answer{}, &refusal{message}
		}
	}
	answer, err := response.answer(r, object)
	if err != nil {
		return explore.Answer{}, err
	}
	if r.Operation == explore.Healthy && !answer.Healthy {
		answer.Message = message
	}
	if err := explore.Check(r, &answer); err != nil {
		return explore.Answer{}, err
	}
	return answer, checkWrites(r, answer)
}

// response is a webhook's, with the fields raw of which it matters whether they are there.
type response struct {
	v1alpha1.ExploreResponse
	status json.RawMessage
}

// responseHeader is what is looked at before a reply is decoded in whole.
type responseHeader struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Response   *struct {
		Status       json.RawMessage `json:"status"`
		Requirements *struct {
			Requests map[string]json.RawMessage `json:"resourceRequest"`
		} `json:"replicaRequirements"`
		Components []struct {
			Requirements *struct {
				Requests map[string]json.RawMessage `json:"resourceRequest"`
			} `json:"replicaRequirements"`
		} `json:"components"`
	} `json:"response"`
}

func readReview(body []byte) (*response, error) {
	var o responseHeader
	if err := decode(body, &o); err != nil {
		return nil, fmt.Errorf("the answer is no ExploreReview: %w", err)
	}
	if o.APIVersion != v1alpha1.GroupVersion.String() || o.Kind != reviewKind {
		return nil, fmt.Errorf("the answer is of apiVersion %.100q and kind %.100q: want %s and %s", o.APIVersion, o.Kind, v1alpha1.GroupVersion,
			reviewKind)
	}
	if o.Response == nil {
		return nil, errors.New("the answer has no response")
	}
	if q := o.Response.Requirements; q != nil {
		if err := checkQuantities("replicaRequirements", q.Requests); err != nil {
			return nil, err
		}
	}
	for i, c := range o.Response.Components {
		if c.Requirements == nil {
			continue
		}
		if err := checkQuantities(fmt.Sprintf("components[%d].replicaRequirements", i), c.Requirements.Requests); err != nil {
			return nil, err
		}
	}
	var review v1alpha1.ExploreReview
	if err := decode(body, &review); err != nil {
		return nil, fmt.Errorf("the answer is no ExploreReview: %w", err)
	}
	return &response{ExploreResponse: *review.Response, status: o.Response.Status}, nil
}

// decode reads JSON; names of fields have to be exact, and unique.
func decode(text []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(text, into, kjson.DisallowDuplicateFields)
	return errors.Join(append(strict, err)...)
}

func checkQuantities(field string, requests map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if err := checkQuantity(requests[name]); err != nil {
			return fmt.Errorf("response.%s.resourceRequest: %.100q: %w", field, name, err)
		}
	}
	return nil
}

// checkQuantity checks a quantity that is a string, which may have escape sequences, or a number.
func checkQuantity(value json.RawMessage) error {
	text := ""
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return pods.CheckQuantity(text)
}

// answer takes what the operation needs.
func (s *response) answer(r explore.Request, object []byte) (explore.Answer, error) {
	missing := func(field string) (explore.Answer, error) {
		return explore.Answer{}, fmt.Errorf("response.%s is not set: %s needs it", field, r.Operation)
	}
	switch r.Operation {
	case explore.Packing, explore.Retaining, explore.ReplicaRevising, explore.StatusAggregating:
		changed, err := s.patched(object)
		return explore.Answer{Object: changed}, err
	}
	if len(s.Patch) > 0 {
		return explore.Answer{}, fmt.Errorf("response.patch is set: %s must not change the object", r.Operation)
	}
	switch r.Operation {
	case explore.Healthy:
		if s.Healthy == nil && s.Health == "" {
			return missing("healthy")
		}
		answer := explore.Answer{Healthy: s.Health == v1alpha1.HealthHealthy}
		if s.Healthy != nil {
			answer.Healthy = *s.Healthy
		}
		return answer, answer.SetOutcome(s.Health)
	case explore.Dependencies:
		return explore.Answer{Dependencies: s.Dependencies}, nil
	case explore.Components:
		return explore.Answer{Components: s.Components}, nil
	case explore.Replica:
		if s.Replicas == nil {
			return missing("replicas")
		}
		return explore.Answer{Replicas: *s.Replicas, Requirements: s.ReplicaRequirements}, nil
	case explore.Status:
		if s.status == nil {
			return missing("status")
		}
		var status any
		if err := utiljson.Unmarshal(s.status, &status); err != nil {
			return explore.Answer{}, fmt.Errorf("response.status: %w", err)
		}
		return explore.Answer{Status: status}, nil
	}
	return explore.Answer{}, fmt.Errorf("operation %q is unknown", r.Operation)
}

// patched applies the patch to the object. No patch changes nothing.
func (s *response) patched(object []byte) (*unstructured.Unstructured, error) {
	switch {
	case s.PatchType == nil && len(s.Patch) == 0:
		return objectOf(object)
	case s.PatchType == nil:
		return nil, fmt.Errorf("response.patch is set without response.patchType: set it to %s", v1alpha1.PatchTypeJSONPatch)
	case *s.PatchType != v1alpha1.PatchTypeJSONPatch:
		return nil, fmt.Errorf("response.patchType is %.100q: want %s", *s.PatchType, v1alpha1.PatchTypeJSONPatch)
	case len(s.Patch) == 0:
		return nil, errors.New("response.patch is empty, but response.patchType is set: leave out both to change nothing")
	}
	patch, err := jsonpatch.DecodePatch(s.Patch)
	if err != nil {
		return nil, fmt.Errorf("response.patch is no JSON patch (RFC 6902): %w", err)
	}
	if len(patch) > maxPatches {
		return nil, fmt.Errorf("response.patch has %d operations: at most %d are allowed", len(patch), maxPatches)
	}
	if size := len(object) + len(s.Patch); len(patch)*size > maxWork {
		return nil, fmt.Errorf("response.patch has %d operations on %d bytes, which is too much work: replace lists as a whole", len(patch), size)
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices, options.AccumulatedCopySizeLimit = false, MaxAnswer
	patched, err := apply(patch, object, options)
	if err != nil {
		return nil, fmt.Errorf("response.patch does not fit the object: %s", text.Truncate(err.Error(), 500))
	}
	if len(patched) > MaxAnswer {
		return nil, errTooLarge
	}
	return objectOf(patched)
}

// apply makes an error of a panic: the library has some for odd patches, which must not end the process.
func apply(patch jsonpatch.Patch, object []byte, options *jsonpatch.ApplyOptions) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = nil, fmt.Errorf("it cannot be applied: %v", p)
		}
	}()
	return patch.ApplyWithOptions(object, options)
}

func objectOf(text []byte) (*unstructured.Unstructured, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil || object == nil {
		return nil, errors.New("response.patch leaves no object")
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// checkWrites refuses changes where a webhook must not make them, but the layers within kudo may.
func checkWrites(r explore.Request, a explore.Answer) error {
	if r.Operation != explore.ReplicaRevising {
		return nil
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(r.Object.Object)), maps.Keys(a.Object.Object))
	slices.Sort(keys) // an error that stays the same
	for _, key := range keys {
		if key != "spec" && !explore.Equal(r.Object.Object[key], a.Object.Object[key]) {
			return fmt.Errorf("%.100s was changed: %s may write spec only", key, r.Operation)
		}
	}
	return nil
}

// shorten makes a message of a webhook fit for a status: of one line, without control characters, and not long.
func shorten(message string) string {
	return text.Plain(message, maxMessage)
}
