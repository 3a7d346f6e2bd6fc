package preview

import "kudo.dev/kudo/operators/params"

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

// maskBasis masks sensitive values of an edit, and of those of its children, which read the same objects.
func maskBasis(basis []Basis, c *computation) {
	for n := range basis {
		basis[n].Object = c.mask.Whole(basis[n].Object)
	}
	for _, child := range c.children {
		maskBasis(basis, child)
	}
}
