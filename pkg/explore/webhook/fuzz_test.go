package webhook

import (
	"encoding/json"
	"slices"
	"testing"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// FuzzAnswer reads any reply to any operation: it never panics, never changes the request, and what it lets through
// passes explore.Check, is JSON, and is the same the next time.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		`{"uid":"u","healthy":true}`,
		`{"uid":"u","replicas":3,"replicaRequirements":{"resourceRequest":{"cpu":"100m","memory":"1e3"},"nodeClaim":{"nodeSelector":{"a":"b"}}}}`,
		`{"uid":"u","status":{"a":[1,null,{}]},"dependencies":[{"apiVersion":"v1","kind":"Secret","name":"s"}]}`,
		`{"uid":"u","result":{"status":"Failure","message":"no"}}`,
	} {
		f.Add([]byte(`{"apiVersion":"config.kudo.dev/v1alpha1","kind":"ExploreReview","response":`+body+`}`), []byte(`[]`), byte(2))
	}
	for i, operations := range []string{
		`[{"op":"add","path":"/status","value":{"a":1}}]`,
		`[{"op":"move","from":"/spec/replicas","path":"/spec/list/0"},{"op":"copy","from":"/spec","path":"/spec/copy"}]`,
		`[{"op":"test","path":"/spec/none","value":null},{"op":"remove","path":"/spec/none"},{"op":"replace","path":"/spec/list/1","value":{"~":1}}]`,
	} {
		f.Add([]byte(nil), []byte(operations), byte(i))
	}
	f.Fuzz(func(t *testing.T, body, operations []byte, which byte) {
		operation := explore.Operations()[int(which)%len(explore.Operations())]
		if len(body) == 0 {
			text, _ := json.Marshal(operations)
			body = []byte(`{"apiVersion":"config.kudo.dev/v1alpha1","kind":"ExploreReview","response":{"uid":"u","patchType":"JSONPatch","patch":` + string(text) + `}}`)
		}
		r := requestOf(t, operation)
		before := exploretest.Text(t, r)
		object, _, err := newReview("u", r)
		if err != nil {
			t.Fatal(err)
		}
		sent := slices.Clone(object)
		answer, err := readAnswer(r, object, "u", body)
		again, errAgain := readAnswer(r, object, "u", body)
		if exploretest.Text(t, r) != before || !slices.Equal(sent, object) {
			t.Fatal("the request was changed")
		}
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("the error varies: %v, %v", err, errAgain)
		}
		if err != nil {
			return
		}
		if err := explore.Check(r, &answer); err != nil {
			t.Fatalf("let through what no layer may answer: %v", err)
		}
		if a, b := exploretest.Text(t, answer), exploretest.Text(t, again); a != b {
			t.Fatalf("the answer varies:\n%s\n%s", a, b)
		}
	})
}
