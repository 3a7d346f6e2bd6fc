package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
)

// volatile annotations are written along with a change, and never cause one (engine rule 22).
var volatile = []string{v1beta1.PlanAnnotation, v1beta1.PhaseAnnotation, v1beta1.StepAnnotation, v1beta1.PlanUIDAnnotation}

// hashPurpose keeps the digests of rendered Secrets apart from others.
const hashPurpose = "object"

// Hash returns a hash of a rendered object, without what every run writes anew. That of a Secret is a keyed digest: who
// reads the inventory could try out guesses otherwise. It is "" if it cannot be made, which is equal to nothing.
func Hash(obj *unstructured.Unstructured, keys *keyring.Ring) string {
	text := rendered(obj)
	switch {
	case text == "":
		return ""
	case secret(obj):
		return keys.Digest(hashPurpose, text)
	}
	return plainHash(text)
}

// SameHash reports whether a hash, which may be of an older key, is that of a rendered object.
func SameHash(hash string, obj *unstructured.Unstructured, keys *keyring.Ring) bool {
	text := rendered(obj)
	switch {
	case text == "" || hash == "":
		return false
	case secret(obj) && keyring.IDOf(hash) != "":
		return keys.Fits(hash, hashPurpose, text)
	}
	return hash == plainHash(text) // of a Secret only as it was written before there were keys
}

// Keyless reports whether a hash of a Secret is one of before there were keys, so that it must not be kept.
func Keyless(id ID, hash string) bool {
	return id.Group == "" && id.Kind == "Secret" && hash != "" && keyring.IDOf(hash) == ""
}

func secret(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Secret"
}

func plainHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// Digest is the SHA-256 of a rendered object, without what every run writes anew. It is compared in memory, where namespaces
// share what was found of an object, and is written nowhere: of a Secret, it would tell of the values.
func Digest(obj *unstructured.Unstructured) ([sha256.Size]byte, bool) {
	text := rendered(obj)
	return sha256.Sum256([]byte(text)), text != ""
}

// rendered returns the text that hashes of an object are computed from, or "" if the object cannot be written as JSON.
func rendered(obj *unstructured.Unstructured) string {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	kept := make(map[string]any, len(annotations))
	maps.Copy(kept, annotations)
	for _, key := range volatile {
		delete(kept, key)
	}
	shallow, meta := make(map[string]any, len(obj.Object)), make(map[string]any, len(metadata))
	maps.Copy(shallow, obj.Object)
	maps.Copy(meta, metadata)
	meta["annotations"], shallow["metadata"] = kept, meta
	text, err := json.Marshal(shallow) // keys of maps are sorted
	if err != nil {
		return ""
	}
	return string(text)
}

// rehashed returns what is known of one object, with its hash by the newest key in place of that by an older one, if both
// are of the same content.
func (o Options) rehashed(id ID, obj *unstructured.Unstructured, hash string) map[ID]Record {
	known, ok := o.Known[id]
	if !ok || known.Hash == hash || !SameHash(known.Hash, obj, o.Keys) {
		return o.Known
	}
	known.Hash = hash
	return map[ID]Record{id: known}
}
