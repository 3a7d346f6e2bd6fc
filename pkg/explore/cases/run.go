package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"time"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua"
)

// Repetitions is how often each case is asked: answers must not vary.
const Repetitions = 20

// State is the verdict on a case.
type State string

// The states.
const (
	// Passed cases are answered as they expect.
	Passed State = "passed"
	// Failed cases are not.
	Failed State = "failed"
	// Broken cases cannot be judged: their document is malformed.
	Broken State = "broken"
	// Unasserted cases expect nothing, and were answered without an error.
	Unasserted State = "unasserted"
)

// Result is what came of a case.
type Result struct {
	// Folder and Name of the case, and its Place.
	Folder, Name, Place string
	// Operation is empty for broken cases whose document does not name one.
	Operation explore.Operation
	State     State
	// Failures are why the case failed or is broken; none if it passed.
	Failures []string
	// Warnings lists the parts of the case and of the answer that are ignored.
	Warnings []string
	// Took is the time of all repetitions.
	Took time.Duration
}

// Strict makes failures of the warnings.
func (r *Result) Strict() {
	if len(r.Warnings) == 0 {
		return
	}
	r.Failures, r.Warnings = append(r.Failures, r.Warnings...), nil
	if r.State != Broken {
		r.State = Failed
	}
}

// Run asks a layer a case, which must not be broken: the layer must answer as expected, each of 20 times the same. The result of a
// retention must stay if it is retained again; one of an aggregation that does not is a warning, since kudo aggregates fresh statuses
// into the template and never into its own sum. The case expects the answer as the layer gives it, not as the chain would trim it.
func Run(ctx context.Context, layer explore.Explorer, c *Case) (failures, warnings []string) {
	raw, known, err := ask(ctx, layer, c.Request)
	switch {
	case err != nil:
		return []string{cause(err)}, nil
	case !known:
		return []string{"no layer answers " + string(c.Request.Operation) + " for " + c.Request.Object.GetAPIVersion() + " " +
			c.Request.Object.GetKind()}, nil
	}
	if failures = c.unknownOutputs(); failures == nil {
		failures = c.Compare(raw)
	}
	first := raw
	warnings = explore.Normalize(c.Request, &first)
	text := encode(first)
	for range Repetitions - 1 {
		again, _, err := ask(ctx, layer, c.Request)
		if err != nil {
			return append(failures, "asked again: "+cause(err)), warnings
		}
		explore.Normalize(c.Request, &again)
		if !bytes.Equal(encode(again), text) {
			return append(failures, "the answer varies from one time to another"), warnings
		}
	}
	switch c.Request.Operation {
	case explore.Retaining:
		failures = append(failures, c.settled(ctx, layer, first)...)
	case explore.StatusAggregating:
		warnings = append(warnings, c.settled(ctx, layer, first)...)
	}
	return failures, warnings
}

// ask returns the answer of a layer, checked, but with all that the layer has answered.
func ask(ctx context.Context, layer explore.Explorer, r explore.Request) (explore.Answer, bool, error) {
	answer, known, err := layer.Explore(ctx, r)
	if err == nil && known {
		err = explore.Check(r, &answer)
	}
	return answer, known, err
}

// settled repeats a retention or an aggregation on its own result, and reports a difference.
func (c *Case) settled(ctx context.Context, layer explore.Explorer, first explore.Answer) []string {
	r := c.Request
	r.Object = first.Object
	again, known, err := ask(ctx, layer, r)
	switch {
	case err != nil:
		return []string{"asked about its own result: " + cause(err)}
	case !known:
		return []string{"asked about its own result, it has no opinion"}
	}
	explore.Normalize(r, &again)
	var found []string
	for _, d := range differences("object", first.Object.Object, again.Object.Object) {
		found = append(found, "asked about its own result, it answers otherwise: "+d)
	}
	return found
}

// cause is an error without the names of the layer and the object, which the case tells.
func cause(err error) string {
	if unknown, ok := explore.IsUnknown(err); ok {
		return unknown.Err.Error()
	}
	return err.Error()
}

func encode(a explore.Answer) []byte {
	text, err := json.Marshal(a)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// RunAll runs the cases of folders, several at a time. The results are in the order of the cases. The clock of scripts stands still for
// a case.
func RunAll(ctx context.Context, folders []Folder, clock func() time.Time) []Result {
	type job struct {
		folder *Folder
		c      *Case
	}
	var jobs []job
	for i := range folders {
		for j := range folders[i].Cases {
			jobs = append(jobs, job{&folders[i], &folders[i].Cases[j]})
		}
	}
	results := make([]Result, len(jobs))
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				start := clock()
				results[i] = judge(lua.WithTime(ctx, start), jobs[i].folder, jobs[i].c)
				results[i].Took = clock().Sub(start)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wait.Wait()
	return results
}

func judge(ctx context.Context, folder *Folder, c *Case) Result {
	result := Result{Folder: folder.Path, Name: c.Name, Place: c.Place, Operation: c.Request.Operation, Warnings: c.Warnings}
	if c.Broken != nil {
		result.State, result.Failures = Broken, []string{c.Broken.Error()}
		return result
	}
	failures, warnings := Run(ctx, folder.Layer, c)
	result.Failures, result.Warnings = failures, append(slices.Clone(c.Warnings), warnings...)
	switch {
	case len(failures) > 0:
		result.State = Failed
	case c.Unasserted():
		result.State = Unasserted
	default:
		result.State = Passed
	}
	return result
}
