package share

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// SharedObject is an object that Installations hold in the cluster, as people see it.
type SharedObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	State      string `json:"state"`
	// Managed is set if kudo has created the object. ReadLive sets it.
	Managed bool `json:"managed"`
	// HeldBy are the subjects of the Installations, each with the state in which it holds the object, sorted.
	HeldBy []string `json:"heldBy"`
	// Owners are the owners of the live object. ReadLive sets them.
	Owners  []string `json:"owners,omitempty"`
	Message string   `json:"message,omitempty"`
	// Holds are the entries of HeldBy as values, in the same order.
	Holds []Hold `json:"-"`
}

// stateOK is the state of an object that no holder misses or has found to differ.
const stateOK = "OK"

// Hold is one holder of a SharedObject.
type Hold struct {
	Subject v1beta1.InstallationSubject
	State   v1beta1.HoldState
}

// String returns the holder for people.
func (h Hold) String() string {
	return fmt.Sprintf("%s %s/%s (%s)", h.Subject.Kind, h.Subject.Namespace, h.Subject.Name, h.State)
}

// Inventories merges the inventories of Installations to a list of objects, sorted by kind, namespace and name. It reads nothing.
func Inventories(installations []v1beta1.Installation) []*SharedObject {
	found, out := map[string]*SharedObject{}, []*SharedObject{} // a program reads a list, even if it is empty
	for _, i := range installations {
		for _, r := range i.Status.Resources {
			id := IDOf(r)
			o := found[id.String()+id.Group]
			if o == nil {
				o = &SharedObject{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, State: stateOK}
				found[id.String()+id.Group] = o
				out = append(out, o)
			}
			o.Holds = append(o.Holds, Hold{i.Spec.Subject, r.State})
			if r.State == v1beta1.HoldMismatch || r.State == v1beta1.HoldMissing {
				o.State, o.Message = string(r.State), r.Message
			}
		}
	}
	for _, o := range out {
		slices.SortFunc(o.Holds, func(a, b Hold) int { return cmp.Compare(a.String(), b.String()) })
		for _, h := range o.Holds {
			o.HeldBy = append(o.HeldBy, h.String())
		}
	}
	slices.SortFunc(out, func(a, b *SharedObject) int {
		return cmp.Compare(a.Kind+"/"+a.Namespace+"/"+a.Name, b.Kind+"/"+b.Namespace+"/"+b.Name)
	})
	return out
}

// ReadLive reads the live object. What a holder has found to be missing or different is not changed.
func (e *Engine) ReadLive(ctx context.Context, o *SharedObject) error {
	live, err := e.Live(ctx, v1beta1.HeldResource{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
	if err != nil {
		return err
	}
	if live == nil {
		if o.State == stateOK {
			o.State = string(v1beta1.HoldMissing)
		}
		return nil
	}
	if live.GetDeletionTimestamp() != nil && o.State == stateOK {
		o.State = "Terminating"
	}
	o.Managed = Managed(live)
	for _, owner := range live.GetOwnerReferences() {
		o.Owners = append(o.Owners, owner.Kind+" "+owner.Name)
	}
	return nil
}
