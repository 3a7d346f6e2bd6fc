package preview

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
	"kudo.dev/kudo/pkg/share"
)

// Shares of an OperatorVersion, or of the tarball of an Instance, in an object that others hold.
const (
	// ShareJoin is for objects that are as wanted: there would be one more holder.
	ShareJoin = "join"
	// ShareChange is for objects that would be changed for all holders.
	ShareChange = "change"
	// ShareLeave is for objects that others still hold.
	ShareLeave = "leave"
	// ShareMismatch is for objects that are not as wanted, and that the others do not let change.
	ShareMismatch = "mismatch"
)

// Share is what would become of the share in an object that others hold.
type Share struct {
	Object string `json:"object"`
	Share  string `json:"share"`
	// Holders are the others.
	Holders []string `json:"holders,omitempty"`
}

// why explains the effect on the object.
func (s Share) why() string {
	holders := strings.Join(s.Holders, ", ")
	if s.Share == ShareJoin {
		return fmt.Sprintf("it is as the install plan wants it; %s holds it, too", holders)
	}
	return fmt.Sprintf("%s holds it, too", holders)
}

// noteMismatch notes an object that is refused since others hold it as it is.
func (p *Preview) noteMismatch(change apply.Change) {
	var mismatch *share.MismatchError
	if errors.As(change.Err, &mismatch) {
		p.Shared = append(p.Shared, Share{change.ID.String(), ShareMismatch, mismatch.Holders})
	}
}

// shared fills in what would become of an object of an install plan.
func (r report) shared(ctx context.Context, out *Object, change dryrun.Change) {
	r.definitions.noteMigration(change)
	d := compare(change.Before, change.After, r.mask)
	of := Share{Object: change.ID.String(), Holders: r.share.Holders(ctx, change.Before)}
	switch {
	case len(d.fields) > 0:
		out.Effect, out.Fields, out.Metadata, of.Share = Modify, d.fields, d.metadata, ShareChange
	case share.Managed(change.Before):
		out.Effect, of.Share = Join, ShareJoin
	default:
		out.Effect, out.Why = Unchanged, "kudo did not create it: it is used as it is, and never deleted"
		return
	}
	out.Why = of.why()
	r.out.Shared = append(r.out.Shared, of)
}
