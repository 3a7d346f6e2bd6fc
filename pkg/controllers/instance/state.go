package instance

import (
	"kudo.dev/kudo/plans/trigger"
)

// state names the situation of an Instance.
type state string

const (
	// released: it is being deleted, and its finalizer is removed.
	released state = "released"
	// releasable: it is being deleted, and nothing is to be cleaned up anymore.
	releasable state = "releasable"
	// cleanupDue: it is being deleted, and its cleanup plan is to be started.
	cleanupDue state = "cleanupDue"
	// cleanupRunning: it is being deleted, and its cleanup plan runs.
	cleanupRunning state = "cleanupRunning"
	// cleanupFailed: it is being deleted, and its cleanup plan waits for a retry or for being given up.
	cleanupFailed state = "cleanupFailed"
	// statusUnclean: its status holds what an earlier version of kudo or another client has put there.
	statusUnclean state = "statusUnclean"
	// statusRestored: its status is that of an Instance with another uid.
	statusRestored state = "statusRestored"
	// finalizerOutdated: its finalizer is not as its OperatorVersion needs it.
	finalizerOutdated state = "finalizerOutdated"
	// cancelRequested: a user asks to end its run.
	cancelRequested state = "cancelRequested"
	// keyMissing: there is no key to seal the record of a run with.
	keyMissing state = "keyMissing"
	// formatUnknown: a newer version of kudo has written the record that is needed. No observation leads to it: the record is read when a
	// run is resumed or started.
	formatUnknown state = "formatUnknown"
	// versionMissing: its OperatorVersion does not exist.
	versionMissing state = "versionMissing"
	// parametersMissing: what spec.parametersFrom names cannot be read.
	parametersMissing state = "parametersMissing"
	// specRefused: its spec cannot be acted upon.
	specRefused state = "specRefused"
	// packageRefused: PackagePolicies refuse the package.
	packageRefused state = "packageRefused"
	// accountMissing: the account does not exist with whose rights its plans run.
	accountMissing state = "accountMissing"
	// installPending: its plan waits for the install plan of the OperatorVersion.
	installPending state = "installPending"
	// held: a hub has placed it, and has not released it, so that nothing is started.
	held state = "held"
	// restoreDue: its first run is due, and it is to take over what a restore has created instead.
	restoreDue state = "restoreDue"
	// startDue: a run is to be started, in place of the running one, if there is one.
	startDue state = "startDue"
	// running: a plan is running.
	running state = "running"
	// idle: nothing runs and nothing is to be started.
	idle state = "idle"
)

// state returns the state of what was observed. The first line that applies counts:
//
//	no key, being deleted                 released without finalizer, releasable in a namespace that terminates, else keyMissing
//	no key                                keyMissing
//	the status is of another uid          statusRestored
//	the status is unclean                 statusUnclean
//	being deleted                         deletionState
//	the finalizer is outdated             finalizerOutdated
//	the run is to be ended                cancelRequested
//	running, and nothing can be started   running: a run wins over a spec that is refused
//	running, and nothing is to start      running
//	a hub has not released it             held
//	blocked                               that state
//	the first run is to be started, and
//	    a restore has created its objects restoreDue
//	a run is to be started                startDue
//	else                                  idle
func (o observation) state() state {
	switch {
	case o.blocked != nil && o.blocked.state == keyMissing && o.deleted && !o.finalizer:
		return released
	case o.blocked != nil && o.blocked.state == keyMissing && o.deleted && o.namespaceTerminating:
		return releasable
	case o.blocked != nil && o.blocked.state == keyMissing:
		return keyMissing
	case o.foreign:
		return statusRestored
	case o.unclean:
		return statusUnclean
	case o.deleted:
		return o.deletionState()
	case o.outdated:
		return finalizerOutdated
	case o.canceled:
		return cancelRequested
	case o.running && (o.blocked != nil || o.start == nil):
		return running
	case o.held:
		return held
	case o.blocked != nil:
		return o.blocked.state
	case o.start != nil && o.restored:
		return restoreDue
	case o.start != nil:
		return startDue
	}
	return idle
}

// deletionState returns the state of an Instance that is being deleted:
//
//	finalizer    deletion    canceled    retry    namespace      state
//	no           any         any         any      any            released
//	yes          Release     any         any      any            releasable
//	yes          CleanUp     any         any      any            cleanupDue
//	yes          Continue    any         any      any            cleanupRunning
//	yes          Hold        yes         any      any            releasable
//	yes          Hold        no          yes      any            cleanupDue
//	yes          Hold        no          no       terminating    releasable
//	yes          Hold        no          no       stays          cleanupFailed
func (o observation) deletionState() state {
	switch {
	case !o.finalizer:
		return released
	case o.deletion == trigger.Release, o.deletion == trigger.Hold && o.cleanupCanceled:
		return releasable
	case o.deletion == trigger.CleanUp, o.deletion == trigger.Hold && o.cleanupRetry:
		return cleanupDue
	case o.deletion == trigger.Continue:
		return cleanupRunning
	case o.deletion == trigger.Hold && o.namespaceTerminating:
		return releasable
	case o.deletion == trigger.Hold:
		return cleanupFailed
	}
	return ""
}
