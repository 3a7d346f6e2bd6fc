package preview

import (
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
)

// maskNames masks sensitive values in names of objects, which templates may make from them, and in explanations that name objects.
func (p *Preview) maskNames(mask params.Mask) {
	for i := range p.Objects {
		p.Objects[i].maskNames(mask)
	}
	for i := range p.Stays {
		of := &p.Stays[i]
		of.Object, of.Why, of.Holders = mask.Whole(of.Object), mask.Text(of.Why), maskAll(of.Holders, mask)
	}
	for i := range p.Shared {
		of := &p.Shared[i]
		of.Object, of.Holders = mask.Whole(of.Object), maskAll(of.Holders, mask)
	}
}

// maskInstall masks the sensitive values that a version gives to its install plan.
func (p *Preview) maskInstall(version *v1beta1.OperatorVersion) {
	n := notes{out: p}
	n.hide(values{given: version.Spec.InstallParameters, defs: version.Spec.Parameters})
	p.maskNames(n.mask)
	for i, warning := range p.Warnings {
		p.Warnings[i] = n.mask.Text(warning)
	}
	maskBasis(p.Basis, n.mask)
}

func (o *Object) maskNames(mask params.Mask) {
	o.Name, o.Why = mask.Whole(o.Name), mask.Text(o.Why)
	if o.Restart != nil {
		o.Restart.Why = mask.Text(o.Restart.Why)
	}
	for i := range o.Blame { // the path may hold the name of an entry of a list
		o.Blame[i].Field = mask.Whole(o.Blame[i].Field)
	}
}

// maskAll returns texts without sensitive values.
func maskAll(texts []string, mask params.Mask) []string {
	var out []string
	for _, one := range texts {
		out = append(out, mask.Whole(one))
	}
	return out
}

// maskBasis masks sensitive values in names of objects from which a preview was decided.
func maskBasis(basis []Basis, mask params.Mask) {
	for n := range basis {
		basis[n].Object = mask.Whole(basis[n].Object)
	}
}

// maskReads masks the sensitive values of a computation, and of its children, which read by the same client, in what all of them have read.
func maskReads(basis []Basis, c *computation) {
	maskBasis(basis, c.mask)
	for _, child := range c.children {
		maskReads(basis, child)
	}
}
