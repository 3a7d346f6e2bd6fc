package operatorversion

// state names the situation of an OperatorVersion.
type state string

const (
	// released: it is being deleted, and its finalizer is removed.
	released state = "released"
	// releasing: it is being deleted, and waits until what it installed is released.
	releasing state = "releasing"
	// unmanaged: it has no install plan, and nothing was installed by one.
	unmanaged state = "unmanaged"
	// keyMissing: there is no key to seal the record of a run with.
	keyMissing state = "keyMissing"
	// statusRestored: its status is that of an OperatorVersion with another uid.
	statusRestored state = "statusRestored"
	// installationReleasing: its Installation is being deleted, and is created again afterwards.
	installationReleasing state = "installationReleasing"
	// packageRefused: PackagePolicies refuse the package.
	packageRefused state = "packageRefused"
	// specRefused: the install plan cannot be run as spec has it.
	specRefused state = "specRefused"
	// startDue: the install plan is to be started.
	startDue state = "startDue"
	// running: the plan is running.
	running state = "running"
	// failed: the last run has failed, and waits for a retry or a change of spec.
	failed state = "failed"
	// idle: the last run has succeeded, and what it installed is watched.
	idle state = "idle"
)

// state returns the state of what was observed. The first line that applies counts:
//
//	being deleted, without finalizer             released
//	being deleted                                releasing
//	no install plan, no Installation             unmanaged
//	no key                                       keyMissing
//	the status is of another uid                 statusRestored
//	the Installation is being deleted            installationReleasing
//	the package is refused, also while it runs   packageRefused
//	spec is refused, also while a plan runs      specRefused
//	the install plan is to be started            startDue
//	a plan runs                                  running
//	the last run has failed                      failed
//	else                                         idle
func (o observation) state() state {
	switch {
	case o.deleted && !o.finalizer:
		return released
	case o.deleted:
		return releasing
	case !o.hasPlan && o.installation == nil:
		return unmanaged
	case o.keyMissing != "":
		return keyMissing
	case o.foreign:
		return statusRestored
	case o.installation != nil && o.installation.DeletionTimestamp != nil:
		return installationReleasing
	case o.packageRefusal != "":
		return packageRefused
	case o.refusal != "":
		return specRefused
	case o.cause != "":
		return startDue
	case o.running:
		return running
	case o.failed:
		return failed
	}
	return idle
}
