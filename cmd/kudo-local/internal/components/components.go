// Package components holds the entry points of the servers that are linked
// into this binary. The binary starts itself once for each of them, so that
// every server is a process of its own that can be killed and started again.
package components

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"
	_ "time/tzdata" // CronJobs name time zones, and the machine may have no zone files.

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build_info on /metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/controller/job"
)

// The names of the servers, as they are typed by people and as they appear in
// log files.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	// Node is a real node, which takes the place of kwok. Its programs are not linked into this binary.
	Node = "node"
)

// Kubernetes are the servers that Kubernetes consists of, apart from etcd and nodes.
var Kubernetes = []string{APIServer, ControllerManager, Scheduler}

// verb is the first argument of a process that is a component. It is no
// command of the user interface.
const verb = "component"

// Args returns the arguments with which this binary runs component name.
func Args(name string, args []string) []string {
	return append([]string{verb, name}, args...)
}

// FromArgs reports whether a process was started to be a component, and which.
func FromArgs(osArgs []string) (name string, args []string, ok bool) {
	if len(osArgs) < 3 || osArgs[1] != verb {
		return "", nil, false
	}
	return osArgs[2], slices.Clone(osArgs[3:]), true
}

// Run runs a component in this process until it ends, and returns the exit
// code.
func Run(name string, args []string) int {
	// Some of the servers read os.Args instead of what they are given.
	os.Args = append([]string{name}, args...)
	switch name {
	case Etcd:
		etcdmain.Main(os.Args)
		return 0
	case APIServer:
		halveAPIServerGC()
		return runCommand(apiserver.NewAPIServerCommand(), args)
	case ControllerManager:
		shortenJobBackoff()
		return runCommand(controllermanager.NewControllerManagerCommand(), args)
	case Scheduler:
		return runCommand(scheduler.NewSchedulerCommand(), args)
	case Kwok:
		return runKwok()
	}
	fmt.Fprintf(os.Stderr, "there is no component %q in this binary\n", name)
	return 2
}

func runCommand(command *cobra.Command, args []string) int {
	command.SetArgs(args)
	return cli.Run(command)
}

// halveAPIServerGC makes the garbage collector of the API server run half as often, unless GOGC is set:
// it needs a sixth less of the processor then, for a third more memory.
func halveAPIServerGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// shortenJobBackoff makes a Job whose pods fail reach its backoffLimit within
// seconds. With the periods of a production cluster the default limit of 6
// takes ten minutes, which no test waits for.
func shortenJobBackoff() {
	job.DefaultJobPodFailureBackOff = 250 * time.Millisecond
	job.MaxJobPodFailureBackOff = 2 * time.Second
}
