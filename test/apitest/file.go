package apitest

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadFile returns the objects of a file that kubectl get -o yaml has written, for Start.
func ReadFile(tb testing.TB, file string) []client.Object {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var out []client.Object
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if !obj.IsList() {
			out = append(out, obj)
			continue
		}
		err := obj.EachListItem(func(item runtime.Object) error {
			out = append(out, item.(client.Object))
			return nil
		})
		if err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
	}
	return out
}
