package keyring

import (
	"encoding/json"
	"strconv"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// SealRequester returns the value, `<seal> <user>`, of an annotation that names the user who asks something of an Instance: of
// `kudo.dev/requested-by` for spec, or of `kudo.dev/run-requested-by` for the annotations that cancel and retry runs. It returns "" without
// keys.
//
// The Instance has the generation that the write of the user gives it. Its uid is empty in the request that creates it.
func (r *Ring) SealRequester(annotation string, instance *v1beta1.Instance, user string) string {
	parts := requestParts(annotation, instance, string(instance.UID), user)
	if r == nil || parts == nil {
		return ""
	}
	return r.Seal(parts...) + " " + user
}

// Requester returns the user whom an annotation names, see SealRequester. It returns "" if the seal does not fit what the Instance asks for
// now: another client wrote the annotation, or kudo's webhook did not see the last write.
func (r *Ring) Requester(annotation string, instance *v1beta1.Instance) string {
	seal, user, _ := strings.Cut(instance.Annotations[annotation], " ")
	if user == "" {
		return ""
	}
	uids := []string{string(instance.UID)}
	if instance.Generation == 1 && annotation == v1beta1.RequestedByAnnotation {
		uids = append(uids, "") // the request that created it
	}
	for _, uid := range uids {
		if parts := requestParts(annotation, instance, uid, user); parts != nil && r.Sealed(seal, parts...) {
			return user
		}
	}
	return ""
}

// requestParts are what the seal of a requester stands for: one request of one user for one Instance, so that the seal cannot be used for
// another. It returns nil for other annotations.
func requestParts(annotation string, instance *v1beta1.Instance, uid, user string) []string {
	parts := []string{annotation, instance.Namespace, instance.Name, uid, user}
	switch annotation {
	case v1beta1.RequestedByAnnotation:
		spec, err := json.Marshal(instance.Spec)
		if err != nil {
			return nil
		}
		return append(parts, strconv.FormatInt(instance.Generation, 10), string(spec))
	case v1beta1.RunRequestedByAnnotation:
		return append(parts, instance.Annotations[v1beta1.RetryAnnotation], instance.Annotations[v1beta1.CancelAnnotation])
	}
	return nil
}
