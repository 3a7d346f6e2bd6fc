package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore/server"
)

// Widget has only the fields that the webhook needs to know.
type Widget struct {
	Spec struct {
		Size int `json:"size,omitempty"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status"`
}

// A webhook that says when Widgets are done, and keeps the size that their controller gave them. In earnest, it is served by
// http.Server.ListenAndServeTLS.
func Example() {
	hook := server.Operations{
		v1alpha1.ExploreHealthy: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
			var w Widget
			if err := r.Decode(&w); err != nil {
				return nil, err
			}
			return server.Healthy(w.Status.Phase == "Ready", "its phase is "+w.Status.Phase), nil
		},
		v1alpha1.ExploreRetaining: func(_ context.Context, r *server.Request) (*v1alpha1.ExploreResponse, error) {
			var desired, observed Widget
			if err := r.Decode(&desired); err != nil {
				return nil, err
			}
			if err := r.DecodeObserved(&observed); err != nil {
				return nil, err
			}
			kept := desired
			kept.Spec.Size = observed.Spec.Size
			return r.Patch(desired, kept)
		},
	}
	review := `{"apiVersion": "config.kudo.dev/v1alpha1", "kind": "ExploreReview", "request": {"uid": "1", "operation": "ExploreHealthy",
	  "object": {"apiVersion": "example.com/v1", "kind": "Widget", "status": {"phase": "Starting"}}}}`
	request := httptest.NewRequest("POST", "/explore", strings.NewReader(review))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, request)
	fmt.Println(w.Body)
	// Output: {"kind":"ExploreReview","apiVersion":"config.kudo.dev/v1alpha1","response":{"uid":"1","healthy":false,"result":{"metadata":{},"message":"its phase is Starting"}}}
}
