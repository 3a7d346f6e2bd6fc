package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"time"

	"kudo.dev/kudo/pkg/explore"
)

// Repetitions is how often each case is asked: answers must not vary.
const Repetitions = 20

// Result is what came of a case.
type Result struct {
	// Folder and Name of the case, and its Place.
	Folder, Name, Place string
	Operation           explore.Operation
	// Failures are why the case failed; none if it passed.
	Failures []string
	// Took is the time of all repetitions.
	Took time.Duration
}

// Passed reports whether nothing failed.
func (r Result) Passed() bool { return len(r.Failures) == 0 }

// Run asks an explorer a case: it must answer as expected, each of 20 times the same, and the result of a retention
// or an aggregation must stay if it is asked again.
func Run(ctx context.Context, layer explore.Explorer, c *Case) []string {
	chain := explore.Chain{layer}
	first, known, err := chain.Explore(ctx, c.Request)
	switch {
	case err != nil:
		return []string{cause(err)}
	case !known:
		return []string{"no layer answers " + string(c.Request.Operation) + " for " + c.Request.Object.GetAPIVersion() + " " +
			c.Request.Object.GetKind()}
	}
	failures := c.Compare(first)
	text := encode(first)
	for range Repetitions - 1 {
		again, _, err := chain.Explore(ctx, c.Request)
		if err != nil {
			return append(failures, "asked again: "+cause(err))
		}
		if !bytes.Equal(encode(again), text) {
			return append(failures, "the answer varies from one time to another")
		}
	}
	return append(failures, c.settled(ctx, chain, first)...)
}

// settled feeds a retention or an aggregation its own result.
func (c *Case) settled(ctx context.Context, chain explore.Chain, first explore.Answer) []string {
	if c.Request.Operation != explore.Retaining && c.Request.Operation != explore.StatusAggregating {
		return nil
	}
	r := c.Request
	r.Object = first.Object
	again, known, err := chain.Explore(ctx, r)
	switch {
	case err != nil:
		return []string{"asked about its own result: " + cause(err)}
	case !known:
		return []string{"asked about its own result, it has no opinion"}
	}
	var failures []string
	for _, d := range differences("object", first.Object.Object, again.Object.Object) {
		failures = append(failures, "asked about its own result, it answers otherwise: "+d)
	}
	return failures
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

// RunAll runs the cases of folders, several at a time. The results are in the order of the cases.
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
				j := jobs[i]
				start := clock()
				failures := Run(ctx, j.folder.Layer, j.c)
				results[i] = Result{j.folder.Path, j.c.Name, j.c.Place, j.c.Request.Operation, failures, clock().Sub(start)}
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
