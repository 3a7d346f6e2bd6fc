package installation

// state names the situation of an Installation.
type state string

const (
	// held: its object exists, and it holds what was installed.
	held state = "held"
	// migrating: it is held, and definitions are to be migrated, or are named by the status and not to be migrated any more.
	migrating state = "migrating"
	// orphaned: its object does not exist anymore, and it is to be deleted.
	orphaned state = "orphaned"
	// inUse: it is being deleted, and what it holds is needed.
	inUse state = "inUse"
	// releasing: it is being deleted, and what it holds can be released, unless one of the objects blocks that.
	releasing state = "releasing"
	// released: it is being deleted, and holds nothing.
	released state = "released"
)

// state returns the state of what was observed:
//
//	being deleted    finalizer    object     needed    migrations    state
//	no               any          exists     any       none          held
//	no               any          exists     any       due, named    migrating
//	no               any          missing    any       any           orphaned
//	yes              no           any        any       any           released
//	yes              yes          any        yes       any           inUse
//	yes              yes          any        no        any           releasing
func (o observation) state() state {
	switch {
	case !o.deleted && o.subject != nil && (o.migrations || len(o.definitions.due) > 0):
		return migrating
	case !o.deleted && o.subject != nil:
		return held
	case !o.deleted:
		return orphaned
	case !o.finalizer:
		return released
	case o.inUse != nil:
		return inUse
	}
	return releasing
}
