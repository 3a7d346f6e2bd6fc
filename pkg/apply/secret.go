package apply

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stringData moves a Secret's stringData into data, as the server would: under apply, a key that leaves stringData
// would stay in data, and a foreign edit of it would not be seen.
func stringData(body *unstructured.Unstructured) {
	if !secret(body) {
		return
	}
	plain, ok := body.Object["stringData"].(map[string]any)
	delete(body.Object, "stringData")
	if !ok || len(plain) == 0 {
		return
	}
	data, _ := body.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range plain {
		if text, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		} else {
			data[key] = value // the server says what is wrong with it
		}
	}
	body.Object["data"] = data
}
