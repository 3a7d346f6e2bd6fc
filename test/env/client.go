package env

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Cluster is a connection to the control plane as its administrator.
type Cluster struct {
	client.WithWatch
	Config *rest.Config
}

// Connect returns a connection as administrator.
func (e *Env) Connect() (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	return &Cluster{c, config}, err
}

// Minor returns the minor version of the API server, such as 36.
func (c *Cluster) Minor(t testing.TB) int {
	t.Helper()
	asked, err := discovery.NewDiscoveryClientForConfig(c.Config)
	Must(t, err)
	version, err := asked.ServerVersion()
	Must(t, err)
	minor, err := strconv.Atoi(version.Minor)
	Must(t, err)
	return minor
}

// Namespace creates a namespace with a generated name, in which plans run as ServiceAccount kudo: with all rights on what is
// in the namespace, and none elsewhere. The namespace never exists without the labels, whose value is "true": the manager could
// otherwise start a plan before it hears of them.
func (c *Cluster) Namespace(ctx context.Context, labels ...string) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-", Labels: map[string]string{}}}
	for _, label := range labels {
		ns.Labels[label] = "true"
	}
	if err := c.Create(ctx, ns); err != nil {
		return "", err
	}
	return ns.Name, c.Account(ctx, ns.Name)
}

// Await watches an Instance until a predicate holds, and returns it; nil is an Instance that does not exist.
func (c *Cluster) Await(ctx context.Context, namespace, name string, limit time.Duration, holds func(*v1beta1.Instance) bool) (*v1beta1.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last *v1beta1.Instance
	for {
		list := &v1beta1.InstanceList{}
		by := &client.ListOptions{Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", name)}
		if err := c.List(ctx, list, by); err != nil {
			return last, describe(last, err)
		}
		last = nil
		if len(list.Items) > 0 {
			last = &list.Items[0]
		}
		if holds(last) {
			return last, nil
		}
		by.Raw = &metav1.ListOptions{ResourceVersion: list.ResourceVersion}
		events, err := c.Watch(ctx, &v1beta1.InstanceList{}, by)
		if err != nil {
			return last, describe(last, err)
		}
		for e := range events.ResultChan() {
			i, ok := e.Object.(*v1beta1.Instance)
			if !ok {
				break
			}
			if last = i; e.Type == watch.Deleted {
				last = nil
			}
			if holds(last) {
				events.Stop()
				return last, nil
			}
		}
		events.Stop()
		if ctx.Err() != nil {
			return last, describe(last, ctx.Err())
		}
	}
}

func describe(i *v1beta1.Instance, err error) error {
	if i == nil {
		return fmt.Errorf("the Instance is not there: %w", err)
	}
	return fmt.Errorf("instance %s/%s: %+v, conditions %+v: %w", i.Namespace, i.Name, i.Status.AggregatedStatus, i.Status.Conditions, err)
}

// PlanEnded is a predicate: the plan's newest run has a number of at least n and has ended.
func PlanEnded(plan string, n int64) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		return i != nil && i.Status.PlanStatus[plan].Revision >= n && i.Status.PlanStatus[plan].Status.IsTerminal()
	}
}

// Requests are requests at the apiserver since its start, by verb and resource; the verb of a dry run is DRY-RUN, as it is
// no write.
type Requests map[string]int

// DryRun stands for the verb of dry runs.
const DryRun = "DRY-RUN"

// Requests reads the apiserver's own count. Watches, leases and reviews of rights do not count: they are there whatever is done.
func (c *Cluster) Requests(ctx context.Context) (Requests, error) {
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	text, err := set.Discovery().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	out := Requests{}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		verb, resource := label(line, "verb"), label(line, "resource")
		if verb == "WATCH" || verb == "CONNECT" || resource == "" || resource == "leases" || strings.HasSuffix(resource, "reviews") {
			continue
		}
		if label(line, "dry_run") != "" {
			verb = DryRun
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return nil, err
		}
		out[verb+" "+resource] += int(n)
	}
	return out, lines.Err()
}

func label(line, name string) string {
	_, rest, found := strings.Cut(line, ","+name+"=\"")
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, "\"")
	return value
}

// Since returns what has come since an earlier count.
func (r Requests) Since(earlier Requests) Requests {
	out := Requests{}
	for key, n := range r {
		if d := n - earlier[key]; d > 0 {
			out[key] = d
		}
	}
	return out
}

// Writes is how many requests were writes.
func (r Requests) Writes() int {
	n := 0
	for key, count := range r {
		switch verb, _, _ := strings.Cut(key, " "); verb {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
			n += count
		}
	}
	return n
}

// DryRuns is how many requests were dry runs.
func (r Requests) DryRuns() int {
	n := 0
	for key, count := range r {
		if strings.HasPrefix(key, DryRun+" ") {
			n += count
		}
	}
	return n
}

// Total is how many requests there were.
func (r Requests) Total() int {
	n := 0
	for _, count := range r {
		n += count
	}
	return n
}

// Of is how many requests concern a resource.
func (r Requests) Of(resource string) int {
	n := 0
	for key, count := range r {
		if strings.HasSuffix(key, " "+resource) {
			n += count
		}
	}
	return n
}
