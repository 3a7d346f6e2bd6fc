package health

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apijson "k8s.io/apimachinery/pkg/util/json"
)

// decodings returns the object with whole numbers as int64, as clients have it, and with float64, as other decoders
// make it.
func decodings(data []byte) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, decode := range []func([]byte, any) error{
		func(data []byte, into any) error { return apijson.Unmarshal(data, into) },
		json.Unmarshal,
	} {
		var fields map[string]any
		if decode(data, &fields) == nil {
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
	}
	return objects
}
