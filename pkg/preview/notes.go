package preview

import (
	"fmt"
	"maps"
	"slices"

	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
)

// notes are what a computation says besides objects. Sensitive values are hidden in them.
type notes struct {
	out  *Preview
	mask params.Mask
	// secrets are the values that mask hides: those of the Instance, and of those whose plans make it.
	secrets []string
	// sensitive names the parameters whose values must not be shown.
	sensitive []string
}

// hide adds to the masked values those of all sides, for each parameter that is sensitive on any side: a preview shows also the values of
// before.
func (n *notes) hide(sides ...values) {
	names := map[string]bool{}
	for _, side := range sides {
		for _, def := range side.defs {
			if def.Sensitive {
				names[def.Name] = true
			}
		}
	}
	n.sensitive = slices.Sorted(maps.Keys(names))
	n.secrets = slices.Clone(n.secrets)
	for _, side := range sides {
		for _, name := range n.sensitive {
			n.secrets = append(n.secrets, side.given[name])
		}
	}
	n.mask = params.NewMask(n.secrets)
}

func (n *notes) warn(format string, args ...any) {
	n.out.Warnings = append(n.out.Warnings, n.mask.Text(fmt.Sprintf(format, args...)))
}

func (n *notes) unknown(format string, args ...any) {
	n.out.UnknownReasons = append(n.out.UnknownReasons, n.mask.Text(fmt.Sprintf(format, args...)))
}

func (n *notes) refuseDefinitions(why error) {
	n.out.Refused = append(n.out.Refused, "the plan would wait for its CustomResourceDefinitions: "+n.mask.Text(why.Error()))
}

func (n *notes) stays(id apply.ID, why string) {
	n.out.Stays = append(n.out.Stays, Stay{Object: id.String(), Why: why})
}
