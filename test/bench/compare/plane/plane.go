// Package plane is the control plane that is measured: requests and CPU time of its parts, and its manager.
package plane

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/test/env"
)

// Plane is a control plane of the benchmark's own, with kudo installed.
type Plane struct {
	*env.Env
	*env.Cluster
}

// Start brings a control plane up. The profile "api" has hardly anybody but kudo who sends requests; "full" has the
// controllers of Deployments. args are further arguments of kudo-local up.
func Start(profile string, args ...string) (*Plane, error) {
	return connect(env.Start(append([]string{"--profile", profile, "--pod-ready-delay", "0", "--manager-arg=--metrics-secure=false"}, args...)...))
}

// StartBare brings a control plane up that has no kudo.
func StartBare(profile string) (*Plane, error) {
	return connect(env.StartBare("--profile", profile, "--pod-ready-delay", "0"))
}

func connect(e *env.Env, err error) (*Plane, error) {
	if err != nil {
		return nil, err
	}
	if !e.IsDisposable() {
		return nil, fmt.Errorf("benchmarks need a control plane of their own: unset KUDO_TEST_KUBECONFIG")
	}
	c, err := e.Connect()
	if err != nil {
		e.Stop()
		return nil, err
	}
	return &Plane{e, c}, nil
}

// row is the line of a component in the table of kudo-local status: name, process, state, address.
func (p *Plane) row(component string) ([]string, error) {
	out, err := p.Local("status")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == component {
			return fields, nil
		}
	}
	return nil, fmt.Errorf("kudo-local status has no %s: %w\n%s", component, err, out)
}

// PID is the process of a component, such as kube-apiserver and manager.
func (p *Plane) PID(component string) (int, error) {
	fields, err := p.row(component)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0, fmt.Errorf("%s does not run: %s", component, strings.Join(fields, " "))
	}
	return pid, nil
}

// NewNamespace makes a namespace, and waits for what the cluster puts into it.
func (p *Plane) NewNamespace(ctx context.Context) (string, error) {
	ns, err := p.Namespace(ctx)
	if err != nil {
		return "", err
	}
	return ns, Poll(ctx, time.Minute, "the ServiceAccount and ConfigMap of namespace "+ns, func() (bool, error) {
		if err := p.Get(ctx, types.NamespacedName{Namespace: ns, Name: "default"}, &corev1.ServiceAccount{}); err != nil {
			return false, ignoreMissing(err)
		}
		err := p.Get(ctx, types.NamespacedName{Namespace: ns, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
		return err == nil, ignoreMissing(err)
	})
}

// DeleteNamespace deletes a namespace, and waits until it no longer exists.
func (p *Plane) DeleteNamespace(ctx context.Context, ns string) error {
	if err := p.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return err
	}
	return Poll(ctx, 10*time.Minute, "the end of namespace "+ns, func() (bool, error) {
		err := p.Get(ctx, types.NamespacedName{Name: ns}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), ignoreMissing(err)
	})
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Poll asks every 50 ms until something holds.
func Poll(ctx context.Context, limit time.Duration, what string, holds func() (bool, error)) error {
	deadline := time.Now().Add(limit)
	for {
		done, err := holds()
		if err != nil {
			return fmt.Errorf("await %s: %w", what, err)
		}
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("await %s: not after %s", what, limit)
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// Pause waits for a time, unless the context ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
