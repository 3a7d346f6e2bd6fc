package conditions

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// ListDrift returns the entries of status.drift, sorted by object and bounded. Each text is one printable line, because other clients
// choose the names of fields and field managers. An entry keeps its time while its fields and its writer are the same, so that the status
// changes once for each drift.
func ListDrift(before, found []v1beta1.ObjectDrift, now time.Time) []v1beta1.ObjectDrift {
	var out []v1beta1.ObjectDrift
	for _, d := range found {
		out = append(out, bounded(d))
	}
	slices.SortFunc(out, func(a, b v1beta1.ObjectDrift) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.APIVersion, b.APIVersion))
	})
	out = out[:min(len(out), v1beta1.MaxDrift)]
	for i := range out {
		d := &out[i]
		at := slices.IndexFunc(before, func(b v1beta1.ObjectDrift) bool {
			return b.Since != nil && b.IsSameObject(*d) && b.Writer == d.Writer && slices.Equal(b.Fields, d.Fields)
		})
		if since := metav1.NewTime(now).Rfc3339Copy(); at < 0 {
			d.Since = &since
		} else {
			d.Since = before[at].Since
		}
	}
	return out
}

// bounded returns an entry whose texts are short and printable.
func bounded(d v1beta1.ObjectDrift) v1beta1.ObjectDrift {
	var fields []string
	for _, f := range d.Fields[:min(len(d.Fields), v1beta1.MaxDriftFields)] {
		fields = append(fields, text.Plain(f, v1beta1.MaxDriftName))
	}
	d.Fields = fields
	d.Writer = text.Plain(d.Writer, v1beta1.MaxDriftName)
	d.Message = text.Plain(d.Message, v1beta1.MaxDriftMessage)
	return d
}
