package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// kubeconfig writes a kubeconfig for a server, and has commands of the test use it.
func kubeconfig(t *testing.T, host string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '%s'}}]\ncontexts: [{name: c, context: {cluster: c, namespace: lab}}]\n", host)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runAs runs a command of a name that connects and does no more.
func runAs(t *testing.T, name string, args ...string) (env *command.Env, namespace, errs string, code int) {
	t.Helper()
	var out, messages bytes.Buffer
	env = command.NewEnv(strings.NewReader(""), &out, &messages)
	root := &cobra.Command{Use: "kubectl-kudo", SilenceErrors: true, SilenceUsage: true}
	env.AddFlags(root)
	root.AddCommand(&cobra.Command{Use: name, RunE: func(*cobra.Command, []string) (err error) {
		_, _, namespace, err = env.Connect()
		return err
	}})
	root.SetArgs(append([]string{name}, args...))
	code = env.ReportError(root.ExecuteContext(t.Context()))
	return env, namespace, messages.String(), code
}

// TestConnect checks which commands look for kudo's kinds on a cluster, and what they say if a kind is missing.
func TestConnect(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, command string
		args            []string
		missing         string // a kind that is not served
		code            int
		want, namespace string
		discovers       bool
	}{
		"Installed":   {"all kinds are served", "get", nil, "", 0, "", "lab", true},
		"Namespace":   {"a flag wins over the kubeconfig", "get", []string{"-n", "other"}, "", 0, "", "other", true},
		"NoInstances": {"one kind is missing", "get", nil, "Instance", command.ExitError, "its CustomResourceDefinition instances.kudo.dev is missing or not established): run kubectl kudo init", "", true},
		"NoOperators": {"the first kind that is missing is named", "plan", nil, "Operator", command.ExitError, "operators.kudo.dev is missing", "", true},
		"NotAsked":    {"the user goes without the check", "get", []string{"--validate-install=false"}, "Instance", 0, "", "lab", false},
		"OtherName":   {"a command that needs no kinds of kudo does not look for them", "init", nil, "Instance", 0, "", "lab", false},
		"WrongLevel":  {"levels of the log are numbers", "get", []string{"-v", "loud"}, "", command.ExitUsage, `"loud" is no level: use a number from 0 to 10`, "", false},
		"Below":       {"and not negative", "get", []string{"-v=-1"}, "", command.ExitUsage, "is no level", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			kubeconfig(t, server.Config().Host)
			if tc.missing != "" {
				server.RemoveKind(v1beta1.GroupVersion.WithKind(tc.missing))
			}
			_, namespace, errs, code := runAs(t, tc.command, tc.args...)
			if code != tc.code || !strings.Contains(errs, tc.want) || namespace != tc.namespace {
				t.Errorf("%s: exit code %d, want %d, in namespace %q\n%s", tc.reason, code, tc.code, namespace, errs)
			}
			if got := slices.Contains(server.Requests(), "/apis/"+v1beta1.GroupVersion.String()); got != tc.discovers {
				t.Errorf("%s: the kinds were asked for: %t", tc.reason, got)
			}
		})
	}
}

// TestConnectUnreachable checks what a command says of a cluster that does not listen.
func TestConnectUnreachable(t *testing.T) {
	kubeconfig(t, "http://127.0.0.1:1")
	if _, _, errs, code := runAs(t, "get"); code != command.ExitError || !strings.Contains(errs, "the cluster cannot be reached: ") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// TestDiscovery checks that kinds which commands use are not discovered, and that a kind counts as one that the cluster does not serve only
// if discovery says so.
func TestDiscovery(t *testing.T) {
	for _, tc := range []struct {
		reason string
		kind   schema.GroupVersionKind
		served bool
		fails  error
		// isMissing and errs are what the client returns, and discovers reports whether it asks for all groups.
		isMissing, errs, discovers bool
	}{
		{"a kind of kudo", v1beta1.GroupVersion.WithKind("Instance"), true, nil, false, false, false},
		{"a kind of every Kubernetes", corev1.SchemeGroupVersion.WithKind("Secret"), true, nil, false, false, false},
		{"a kind that is served", remote.ClusterKind, true, nil, false, false, true},
		{"a kind that is not served", remote.ClusterKind, false, nil, true, true, true},
		{"a failure", remote.ClusterKind, true, apierrors.NewServiceUnavailable("the server restarts"), false, true, true},
		{"a user without the right to discover", remote.ClusterKind, true,
			apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right")), false, true, true},
	} {
		server := apitest.Start(t)
		kubeconfig(t, server.Config().Host)
		if tc.served && tc.discovers {
			server.AddKind(remote.ClusterKind, false)
		}
		server.Before(func(r apitest.Request) (any, error) {
			if r.String() == "/apis" {
				return nil, tc.fails
			}
			return nil, nil
		})
		c := connectAs(t, "get")
		_, err := c.RESTMapper().RESTMapping(tc.kind.GroupKind(), tc.kind.Version)
		requests := server.Requests()
		if (err != nil) != tc.errs || meta.IsNoMatchError(err) != tc.isMissing || slices.Contains(requests, "/apis") != tc.discovers {
			t.Errorf("%s: %v after %v", tc.reason, err, requests)
		}
		if has, err := command.HasKarmada(c); tc.discovers && (has != (tc.served && tc.fails == nil) || (err != nil) != (tc.fails != nil)) {
			t.Errorf("%s: the hub has Karmada: %t, %v", tc.reason, has, err)
		}
	}
}

// connectAs returns the client of a command of a name.
func connectAs(t *testing.T, name string) (c client.WithWatch) {
	t.Helper()
	env := command.NewEnv(strings.NewReader(""), io.Discard, io.Discard)
	root := &cobra.Command{Use: "kubectl-kudo"}
	env.AddFlags(root)
	root.AddCommand(&cobra.Command{Use: name, RunE: func(*cobra.Command, []string) (err error) {
		c, _, _, err = env.Connect()
		return err
	}})
	root.SetArgs([]string{name})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestVerbosity checks that -v sets the level of the log of requests.
func TestVerbosity(t *testing.T) {
	server := apitest.Start(t)
	kubeconfig(t, server.Config().Host)
	defer func() {
		if _, _, errs, code := runAs(t, "get", "-v", "0"); code != 0 || klog.V(1).Enabled() {
			t.Errorf("the level is back: exit code %d\n%s", code, errs)
		}
	}()
	if _, _, errs, code := runAs(t, "init", "-v", "3"); code != 0 || !klog.V(3).Enabled() || klog.V(4).Enabled() {
		t.Errorf("level 3: exit code %d\n%s", code, errs)
	}
}

// TestRepositoryHome checks which folder repositories are kept in.
func TestRepositoryHome(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Setenv("KUDO_HOME", "/from/environment")
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"the environment variable", nil, "/from/environment"},
		{"the flag wins", []string{"--home", "/from/flag"}, "/from/flag"},
	} {
		env, _, _, _ := runAs(t, "init", tc.args...)
		home, err := env.RepositoryHome()
		if err != nil || home.Dir != tc.want {
			t.Errorf("%s: %s, error %v", tc.reason, home.Dir, err)
		}
	}
}

// waiting is an Instance of the server that has not arrived.
func waiting(server *apitest.Server) *v1beta1.Instance {
	i := gen.Instance("site", gen.Version("lab", "web-1.0"), nil)
	i.Generation = 1
	server.Put(i)
	stored := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	server.Read(stored)
	return stored
}

// waitFor waits for an Instance with a client of the server.
func waitFor(t *testing.T, server *apitest.Server, known *v1beta1.Instance, limit time.Duration, over command.InstanceCondition) error {
	t.Helper()
	c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: apitest.Scheme(), Mapper: server.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	env := command.NewEnv(nil, &bytes.Buffer{}, &errs)
	err = env.WaitForInstance(t.Context(), c, known, limit, over)
	if strings.Contains(errs.String(), "\x1b") {
		t.Errorf("a file that is no terminal gets no drawings: %q", errs.String())
	}
	return err
}

// TestWaitForInstance checks how a wait for an Instance begins, continues and ends.
func TestWaitForInstance(t *testing.T) {
	arrive := func(server *apitest.Server, i *v1beta1.Instance, status v1beta1.ExecutionStatus) {
		next := i.DeepCopy()
		started := metav1.NewMicroTime(time.Unix(1, 0))
		next.Status.ObservedGeneration = i.Generation
		next.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: status, Message: "no image", StartedTimestamp: &started}}
		server.Put(next)
	}
	t.Run("the Instance arrives while the command watches", func(t *testing.T) {
		server := apitest.Start(t)
		i := waiting(server)
		server.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "watch" {
				go arrive(server, i, v1beta1.Complete)
			}
			return nil, nil
		})
		if err := waitFor(t, server, i, time.Minute, command.UntilArrived(i.Generation, i.UID)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a plan fails while the command watches", func(t *testing.T) {
		server := apitest.Start(t)
		i := waiting(server)
		server.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "watch" {
				go arrive(server, i, v1beta1.FatalError)
			}
			return nil, nil
		})
		err := waitFor(t, server, i, time.Minute, command.UntilArrived(i.Generation, i.UID))
		var coded *command.CodeError
		if !errors.As(err, &coded) || coded.Code != command.ExitFailed || !strings.Contains(err.Error(), "plan deploy failed: no image") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what is known already needs no request", func(t *testing.T) {
		server := apitest.Start(t)
		i := waiting(server)
		arrive(server, i, v1beta1.Complete)
		server.Read(i)
		server.Requests()
		if err := waitFor(t, server, i, time.Minute, command.UntilArrived(i.Generation, i.UID)); err != nil {
			t.Error(err)
		}
		if requests := server.Requests(); len(requests) > 0 {
			t.Errorf("the API server was asked: %v", requests)
		}
	})
	t.Run("an Instance that is not known is read", func(t *testing.T) {
		server := apitest.Start(t)
		i := waiting(server)
		arrive(server, i, v1beta1.Complete)
		if err := waitFor(t, server, &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}, time.Minute, command.UntilArrived(0, "")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a deletion ends the wait", func(t *testing.T) {
		server := apitest.Start(t)
		i := waiting(server)
		server.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "watch" {
				go server.Remove(i)
			}
			return nil, nil
		})
		if err := waitFor(t, server, i, time.Minute, command.UntilDeleted(i.UID)); err != nil {
			t.Error(err)
		}
	})
	t.Run("an absent Instance is deleted", func(t *testing.T) {
		server := apitest.Start(t)
		if err := waitFor(t, server, &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}, time.Minute, command.UntilDeleted("u")); err != nil {
			t.Error(err)
		}
	})
	t.Run("the wait takes too long", func(t *testing.T) {
		server := apitest.Start(t)
		i := waiting(server)
		err := waitFor(t, server, i, time.Millisecond, func(*v1beta1.Instance) (bool, error) { return false, nil })
		var coded *command.CodeError
		if !errors.As(err, &coded) || coded.Code != command.ExitTimeout || !strings.Contains(err.Error(), "instance lab/site is not ready after 1ms: ") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an API server that refuses ends the wait", func(t *testing.T) {
		server := apitest.Start(t)
		i := waiting(server)
		cause := errors.New("no more watches")
		server.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "watch" {
				return nil, cause
			}
			return nil, nil
		})
		err := waitFor(t, server, i, time.Minute, command.UntilArrived(9, i.UID))
		var coded *command.CodeError
		if err == nil || errors.As(err, &coded) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestWaitForVersion checks the message of a wait for an install plan that takes too long.
func TestWaitForVersion(t *testing.T) {
	for _, tc := range []struct {
		reason string
		status v1beta1.AggregatedStatus
		want   string
	}{
		{"no manager has observed it", v1beta1.AggregatedStatus{}, "it has no status: is the manager running?"},
		{"the plan runs", v1beta1.AggregatedStatus{Status: v1beta1.InProgress}, "its install plan is IN_PROGRESS"},
		{"the plan waits", v1beta1.AggregatedStatus{Status: v1beta1.Pending, Message: "Secret a does not exist"}, "Secret a does not exist"},
	} {
		server := apitest.Start(t)
		ov := gen.Version("lab", "web-1.0")
		ov.Spec.InstallPlan, ov.Status.AggregatedStatus = "setup", tc.status
		server.Put(ov)
		c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: apitest.Scheme(), Mapper: server.Mapper()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, limit := t.Context(), 300*time.Millisecond
		err = command.NewEnv(nil, &bytes.Buffer{}, &bytes.Buffer{}).WaitForVersion(ctx, c, types.NamespacedName{Namespace: "lab", Name: "web-1.0"}, limit,
			func(*v1beta1.OperatorVersion) (bool, error) { return false, nil })
		var coded *command.CodeError
		if !errors.As(err, &coded) || coded.Code != command.ExitTimeout || !strings.Contains(err.Error(), "operatorversion lab/web-1.0 is not done after 300ms: "+tc.want) {
			t.Errorf("%s: got %v", tc.reason, err)
		}
	}
}
