package karmada

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/server"
	"kudo.dev/kudo/pkg/text"
)

// answer asks the chain. A panic of a layer is an error, and the server continues.
func (h *handler) answer(ctx context.Context, asked *request) (given *response, err error) {
	defer func() {
		if p := recover(); p != nil {
			given, err = nil, refuse(http.StatusInternalServerError, "%s of %s panicked: %v", asked.Operation, asked.gvk(), p)
		}
	}()
	operation, known := operations[asked.Operation]
	if !known {
		return nil, refuse(http.StatusNotImplemented, "operation %s is unknown: use %s", text.Quote(asked.Operation, 64),
			strings.Join(slices.Sorted(maps.Keys(operations)), ", "))
	}
	if err := h.check(asked.gvk()); err != nil {
		return nil, refuse(http.StatusNotFound, "kind %s: %w", text.Quote(asked.gvk().String(), 256), err)
	}
	question, err := asked.question(operation)
	if err != nil {
		return nil, err
	}
	if err := question.Validate(); err != nil {
		return nil, &refusal{http.StatusBadRequest, err}
	}
	found, known, err := h.chain.Explore(ctx, question)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, refuse(http.StatusNotFound, "no rule answers %s of %s: write one, or remove the operation from the webhook's rules",
			asked.Operation, explore.NameOf(question.Object))
	}
	return respond(question, found)
}

// respond puts an answer into the fields that the operation has in the protocol. Messages and outcomes of health have none.
func respond(question explore.Request, found explore.Answer) (*response, error) {
	given := &response{Successful: true}
	switch question.Operation {
	case explore.Replica:
		given.Replicas, given.ReplicaRequirements = &found.Replicas, found.Requirements
	case explore.Components:
		given.Components = listOf(found.Components)
	case explore.Healthy:
		given.Healthy = &found.Healthy
	case explore.Dependencies:
		given.Dependencies = listOf(found.Dependencies)
	case explore.Status:
		if given.RawStatus = found.Status; found.Status == nil {
			given.RawStatus = map[string]any{} // nothing of the status, and not all of it, as without an answer
		}
	default:
		patch, err := server.Difference(question.Object.Object, found.Object.Object)
		if err != nil {
			return nil, fmt.Errorf("make the patch of %s: %w", explore.NameOf(question.Object), err)
		}
		if len(patch) > 0 {
			given.Patch, given.PatchType = patch, string(v1alpha1.PatchTypeJSONPatch)
		}
	}
	return given, nil
}

// listOf returns a list that is there even if it is empty.
func listOf[T any](list []T) *[]T {
	if list == nil {
		list = []T{}
	}
	return &list
}
