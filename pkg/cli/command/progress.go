package command

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// How a command shows what it waits for.
const (
	// progressAuto draws a tree on a terminal, and is progressPlain elsewhere.
	progressAuto = "auto"
	// progressPlain writes a line for each change.
	progressPlain = "plain"
	progressNone  = "none"
)

// progressFlag is the value of --progress.
type progressFlag string

// Set implements pflag.Value.
func (p *progressFlag) Set(text string) error {
	if known := []string{progressAuto, progressPlain, progressNone}; !slices.Contains(known, text) {
		return fmt.Errorf("%q: must be auto, plain or none", text)
	}
	*p = progressFlag(text)
	return nil
}

// String implements pflag.Value.
func (p *progressFlag) String() string { return string(*p) }

// Type implements pflag.Value.
func (*progressFlag) Type() string { return "string" }

// addProgress adds the flag --progress.
func (env *Env) addProgress(f *pflag.FlagSet) {
	f.Var(&env.progress, "progress", "how waits are shown on stderr: auto (a tree on a terminal, plain elsewhere), plain (a line for each "+
		"change) or none (default $KUDO_PROGRESS, or auto)")
}

// progressMode returns how waits are shown: progressAuto stands for a tree.
func (env *Env) progressMode() string {
	if env.progress == "" {
		env.progress = progressAuto
		value := os.Getenv("KUDO_PROGRESS")
		if err := env.progress.Set(value); err != nil && value != "" {
			env.Warnf("KUDO_PROGRESS: %v", err)
		}
	}
	mode := env.progress
	if mode == progressAuto && !env.IsTerminal() {
		mode = progressPlain
	}
	return string(mode)
}

// waitLine is the least time before the first line of what is waited for, and between two: a wait may be over at once, and replicas may
// become ready by the second.
const waitLine = time.Second

// changeLines writes a line for each change of plans that a command waits for.
type changeLines struct {
	// writef writes a line.
	writef func(format string, args ...any)
	// withLast is set if the last run is news, too, when it has ended before the first report.
	withLast bool
	// states are the lines that were written, by the run and the step; nil before the first report.
	states map[string]string
	// message is what is waited for, and said when its line was written, or when the wait began.
	message string
	said    time.Time
}

// report writes what has changed since the last report. Of the first one, only what runs is news, and the last run with withLast.
func (l *changeLines) report(status map[string]v1beta1.PlanStatus, message string, now time.Time) {
	first := l.states == nil
	if first {
		l.states, l.said = map[string]string{}, now
	}
	last, _ := plans.LatestRun(status)
	for _, name := range plans.Names(status) {
		isNews := !first || status[name].Status.IsRunning() || l.withLast && name == last
		l.reportPlan(name, status[name], !isNews)
	}
	if message != "" && message != l.message && now.Sub(l.said) >= waitLine {
		l.message, l.said = message, now
		l.writef("waits for: %s", message)
	}
}

// reportPlan writes the changes of a plan, its end after those of its steps. A quiet report only remembers.
func (l *changeLines) reportPlan(name string, st v1beta1.PlanStatus, quiet bool) {
	run := name + " " + string(st.UID)
	if st.Status.IsRunning() {
		l.line(run, "plan "+name, st.Status, quiet)
	}
	for _, phase := range st.Phases {
		for _, step := range phase.Steps {
			place := phase.Name + "/" + step.Name
			l.line(run+" "+place, fmt.Sprintf("plan %s, step %s", name, place), step.Status, quiet)
		}
	}
	l.line(run, "plan "+name, st.Status, quiet)
}

func (l *changeLines) line(key, subject string, status v1beta1.ExecutionStatus, quiet bool) {
	text := fmt.Sprintf("%s: %s", subject, status)
	if l.states[key] == text || status == "" || status == v1beta1.NeverRun || status == v1beta1.Pending {
		return
	}
	l.states[key] = text
	if !quiet {
		l.writef("%s", text)
	}
}

// interruptedError is the error of a wait that the user has interrupted. What was waited for continues.
type interruptedError struct{ continuing string }

// Error implements error.
func (e *interruptedError) Error() string { return "interrupted: " + e.continuing }

// Is makes the error one of a context that was canceled.
func (*interruptedError) Is(target error) bool { return target == context.Canceled }

// Interrupted returns the error of a wait that the user has interrupted, with what continues.
func Interrupted(continuing string) error { return &interruptedError{continuing} }

// interrupted returns the error of an interrupted wait for an Instance, with what continues, if something does.
func (w *watcher) interrupted() error {
	switch {
	case w.instance == nil:
		return context.Canceled
	case w.instance.DeletionTimestamp != nil:
		return &interruptedError{fmt.Sprintf("the deletion continues: kubectl wait --for=delete instances.kudo.dev/%s -n %s", w.key.Name,
			w.key.Namespace)}
	case plans.Running(w.instance.Status.PlanStatus) == "" && len(w.instance.Status.Queue) == 0:
		return context.Canceled
	}
	return &interruptedError{fmt.Sprintf("the plan continues: kubectl kudo plan wait --instance %s -n %s", w.key.Name, w.key.Namespace)}
}
