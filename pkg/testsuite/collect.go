package testsuite

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (c Collector) valid() bool {
	switch c.kind() {
	case "pod":
		return c.Pod != "" || c.Selector != ""
	case "command":
		return c.Command != "" || c.Cmd != ""
	case "events":
		return true
	}
	return false
}

// kind is the type, which may be left out where the fields tell.
func (c Collector) kind() string {
	switch {
	case c.Type != "":
		return c.Type
	case c.Pod != "" || c.Selector != "":
		return "pod"
	case c.Command != "" || c.Cmd != "":
		return "command"
	}
	return ""
}

// selectorTail is how many lines of each pod are shown if a selector chooses them and nothing is said, as in kuttl.
const selectorTail = 10

// command is what a collector runs.
func (c Collector) command(namespace string) Command {
	if c.Namespace != "" {
		namespace = c.Namespace
	}
	switch c.kind() {
	case "command":
		return Command{Command: c.Command + c.Cmd, IgnoreFailure: true}
	case "events":
		return Command{Command: "kubectl get events --sort-by=.lastTimestamp -n " + namespace, IgnoreFailure: true}
	}
	what := c.Pod
	if c.Selector != "" {
		what = "-l '" + c.Selector + "'"
	}
	container := "--all-containers"
	if c.Container != "" {
		container = "-c " + c.Container
	}
	lines := -1
	switch {
	case c.Tail != 0:
		lines = c.Tail
	case c.Selector != "":
		lines = selectorTail
	}
	return Command{Command: fmt.Sprintf("kubectl logs --prefix %s %s --tail=%d -n %s", what, container, lines, namespace), IgnoreFailure: true}
}

// collectTimeout bounds all that is gathered after a failure.
const collectTimeout = 30 * time.Second

// collect shows what helps to understand a failure: the plans of Instances, the last events, and what the step's
// collectors gather.
func (r *Runner) collect(ctx context.Context, s *shell, step *Step) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	if r.Describe != nil {
		if text := r.Describe(ctx, s.kubeconfig, s.namespace); text != "" {
			s.log("%s", indent(text))
		}
	}
	if text := r.events(ctx, s.namespace); text != "" {
		s.log("last events:\n%s", indent(text))
	}
	for _, collector := range step.Collectors {
		if err := s.run(ctx, collector.command(s.namespace), collectTimeout); err != nil {
			s.log("%s", err)
		}
	}
}

// shownEvents is how many events are shown after a failure.
const shownEvents = 10

// events lists the last events of a namespace.
func (r *Runner) events(ctx context.Context, namespace string) string {
	list, err := r.Cluster.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(namespace).List(ctx,
		metav1.ListOptions{Limit: 500})
	if err != nil {
		return ""
	}
	at := func(e unstructured.Unstructured) string {
		for _, field := range []string{"lastTimestamp", "eventTime", "firstTimestamp"} {
			if text, _, _ := unstructured.NestedString(e.Object, field); text != "" {
				return text
			}
		}
		return ""
	}
	sort.SliceStable(list.Items, func(i, j int) bool { return at(list.Items[i]) < at(list.Items[j]) })
	var out []string
	for _, e := range list.Items[max(0, len(list.Items)-shownEvents):] {
		kind, _, _ := unstructured.NestedString(e.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		out = append(out, fmt.Sprintf("%s %s/%s %s: %s", e.Object["type"], kind, name, e.Object["reason"], e.Object["message"]))
	}
	return strings.Join(out, "\n")
}
