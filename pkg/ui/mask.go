package ui

import (
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
)

// maxHidden bounds the values that are searched for in messages, in bytes. To search for more takes longer than people wait for a page.
const maxHidden = 64 << 10

// mask takes the values of sensitive parameters out of messages. The zero value takes nothing.
type mask struct {
	values params.Mask
	// all is set if the values are too many to search for: no message is shown.
	all bool
}

func newMask(values []string) mask {
	slices.Sort(values)
	values = slices.Compact(values)
	size := 0
	for _, value := range values {
		size += len(value)
	}
	if size > maxHidden {
		return mask{all: true}
	}
	return mask{values: params.NewMask(values)}
}

// Text returns a message without the values.
func (m mask) Text(message string) string {
	if m.all && message != "" {
		return params.Masked
	}
	return m.values.Text(message)
}

// isHidden reports whether the value of a parameter is not shown: it is sensitive, or it is not known whether it is, or it is one of those
// that were sensitive in a run.
func isHidden(name string, ov *v1beta1.OperatorVersion, were []string) bool {
	if ov == nil || slices.Contains(were, name) {
		return true
	}
	n := slices.IndexFunc(ov.Spec.Parameters, func(p v1beta1.Parameter) bool { return p.Name == name })
	return n < 0 || ov.Spec.Parameters[n].Sensitive
}

// maskOf returns a mask of the values that are not shown: those among given parameters, and default values.
func maskOf(given map[string]string, ov *v1beta1.OperatorVersion, were []string) mask {
	var values []string
	for name, value := range given {
		if isHidden(name, ov, were) {
			values = append(values, value)
		}
	}
	if ov != nil {
		for _, def := range ov.Spec.Parameters {
			if def.Sensitive && def.Default != nil {
				values = append(values, *def.Default)
			}
		}
	}
	return newMask(values)
}
