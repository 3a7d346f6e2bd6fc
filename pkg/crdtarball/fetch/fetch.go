// Package fetch fetches the CRD tarballs of Instances beside the reconciles: a download may take minutes, and a worker
// that waits for it works on nothing else.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/settings"
)

// Options of a Fetcher.
type Options struct {
	// Cache of tarballs. It is opened when it is first needed.
	Cache crdtarball.Options
	// Policy returns what the administrator has decided; nil is the zero Policy. It is asked for each tarball.
	Policy func() Policy
	// Access to networks; its Hosts, InsideHosts and TokenRealms are those of the Policy.
	Access crdtarball.Access
	// Clock of the back-off.
	Clock clock.WithDelayedExecution
}

// Policy is what an administrator decides about CRD tarballs.
type Policy struct {
	// Default is the crdTarball of Instances that name none, and whose OperatorVersion names none; nil for none.
	Default *v1beta1.CRDTarball
	// Hosts that OperatorVersions may name; empty for all. Instances may name these, and those of their OperatorVersion.
	// Only these may have loopback or private addresses.
	Hosts []string
	// TokenRealms are hosts, besides a registry's own, that its credentials may be sent to.
	TokenRealms []string
}

// PolicyOf returns what the settings of kudo say of CRD tarballs.
func PolicyOf(now settings.Settings) Policy {
	out := Policy{Hosts: now.AllowedHosts, TokenRealms: now.TokenRealms}
	if now.DefaultCRDURL != "" {
		out.Default = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: now.DefaultCRDURL}}
	}
	return out
}

// Fetcher knows the fetches that are under way, by Instance.
type Fetcher struct {
	options Options
	// ctx ends all fetches.
	ctx context.Context
	// enqueue requests a reconcile of an Instance.
	enqueue func(types.NamespacedName)

	mu    sync.Mutex
	cache *crdtarball.Cache
	jobs  map[types.NamespacedName]*job
}

// job is the fetch for one run of one Instance.
type job struct {
	token    string
	began    time.Time
	cancel   context.CancelFunc
	progress crdtarball.Progress
	done     bool
	resolved *crdtarball.Resolved
	// err is why the last fetch failed; it stays until one has succeeded, so that what is shown does not flap.
	err error
	// failures is how often the fetch has failed, and retryAt when it is tried again.
	failures int
	retryAt  time.Time
}

// Back-off of fetches that failed.
const (
	minRetryDelay = 2 * time.Second
	maxAgain      = 30 * time.Second
)

// New returns a fetcher whose fetches end with the context.
func New(ctx context.Context, options Options, enqueue func(types.NamespacedName)) *Fetcher {
	return &Fetcher{options: options, ctx: ctx, enqueue: enqueue, jobs: map[types.NamespacedName]*job{}}
}

// Wanted is the tarball that an Instance needs.
type Wanted struct {
	// Tarball with its templates resolved; nil if the Instance needs none.
	Tarball *v1beta1.CRDTarball
	// Source of the tarball.
	Source crdtarball.Source
	// SpecHash is the SHA-256, in hex, of what decides which content is the right one.
	SpecHash string
	// Digest that an Installation remembers of the first use; empty if there is none.
	Digest string
}

// Resolve resolves which tarball an Instance needs for a version: its own, else the OperatorVersion's, else the default. The
// default is for versions with an install plan, whose authors have the verb install: of other versions, a user who writes one
// could have definitions installed that the user chooses by the name and the version.
// Errors are *crdtarball.Error, and only the author of the block can correct them.
func (f *Fetcher) Resolve(instance *v1beta1.Instance, namespace string, spec *v1beta1.OperatorVersionSpec) (Wanted, error) {
	policy := Policy{}
	if f.options.Policy != nil {
		policy = f.options.Policy()
	}
	given, holder, hosts := policy.Default, instance.Namespace, policy.allowedHosts()
	switch {
	case instance.Spec.CRDTarball != nil:
		given, hosts = instance.Spec.CRDTarball, policy.instanceHosts(spec)
	case spec.CRDTarball != nil:
		given, holder = spec.CRDTarball, namespace
	case spec.InstallPlan == "":
		given = nil
	}
	if given == nil {
		return Wanted{}, nil
	}
	resolved, err := crdtarball.RenderTarball(*given, variables(instance, spec))
	if err != nil {
		return Wanted{}, err
	}
	access := f.options.Access
	access.Hosts, access.InsideHosts, access.TokenRealms = hosts, policy.Hosts, policy.TokenRealms
	source, err := crdtarball.NewSource(resolved, holder, access)
	if err != nil {
		return Wanted{}, err
	}
	hash, err := specHash(instance, resolved, spec)
	return Wanted{Tarball: &resolved, Source: source, SpecHash: hash}, err
}

// specHash returns a hash of what decides which content of a tarball is the right one; the policies do not. Each part of it
// is guarded by the verb install:
//
//	the Instance's own block     the block with its templates, and the name of the OperatorVersion. The fields of that are
//	                             left out: whoever may write them would choose other content
//	another block                the block as it was resolved, and the OperatorVersion, which has an install plan or the
//	                             block itself
func specHash(instance *v1beta1.Instance, resolved v1beta1.CRDTarball, spec *v1beta1.OperatorVersionSpec) (string, error) {
	tarball, fields := resolved, []any{spec.Operator.Name, spec.Version, spec.AppVersion}
	if own := instance.Spec.CRDTarball; own != nil {
		tarball, fields = *own, nil
	}
	tarball.CRDDownloadPolicy, tarball.CRDUpdatePolicy = "", ""
	text, err := json.Marshal(append([]any{tarball, instance.OperatorVersionKey().String()}, fields...))
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

func variables(instance *v1beta1.Instance, spec *v1beta1.OperatorVersionSpec) crdtarball.Variables {
	return crdtarball.Variables{
		OperatorName: spec.Operator.Name, OperatorVersion: spec.Version, AppVersion: spec.AppVersion, Name: instance.Name,
		Namespace: instance.Namespace,
	}
}

func (p Policy) allowedHosts() crdtarball.Hosts {
	return crdtarball.Hosts{Any: len(p.Hosts) == 0, Names: p.Hosts}
}

// instanceHosts returns the hosts that an Instance may name: not even an administrator of a namespace may send the manager to another one.
func (p Policy) instanceHosts(spec *v1beta1.OperatorVersionSpec) crdtarball.Hosts {
	names := slices.Clone(p.Hosts)
	if t := spec.CRDTarball; t != nil {
		for _, host := range crdtarball.HostsOf(*t) {
			if p.allowedHosts().Allows(&url.URL{Scheme: "https", Host: host}) {
				names = append(names, host)
			}
		}
	}
	return crdtarball.Hosts{Names: names}
}

// Poll returns the tarball for a run of an Instance, or how far the fetch of it is; it never blocks. The token names the
// run: a run asks once. A fetch that has failed is begun again after a while, which the Instance is requeued for.
func (f *Fetcher) Poll(key types.NamespacedName, run string,
	wanted Wanted) (resolved *crdtarball.Resolved, progress crdtarball.Progress, err error) {
	text, err := json.Marshal(wanted.Tarball)
	if err != nil {
		return nil, crdtarball.Progress{}, err
	}
	token := run + string(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[key]
	if j != nil && j.token != token {
		j.cancel()
		j = nil
	}
	if j != nil && j.done && j.err != nil && !f.options.Clock.Now().Before(j.retryAt) {
		ctx, cancel := context.WithCancel(f.ctx)
		j.done, j.cancel, j.progress = false, cancel, crdtarball.Progress{}
		go f.fetch(ctx, key, j, wanted)
	}
	if j == nil {
		if f.cache == nil {
			if f.cache, err = crdtarball.Open(f.options.Cache); err != nil {
				return nil, crdtarball.Progress{}, err
			}
		}
		ctx, cancel := context.WithCancel(f.ctx)
		j = &job{token: token, began: f.options.Clock.Now(), cancel: cancel}
		f.jobs[key] = j
		go f.fetch(ctx, key, j, wanted)
	}
	progress = j.progress
	progress.Age = f.options.Clock.Since(j.began)
	return j.resolved, progress, j.err
}

func (f *Fetcher) fetch(ctx context.Context, key types.NamespacedName, j *job, wanted Wanted) {
	defer j.cancel()
	resolved, err := f.cache.Resolve(ctx, crdtarball.Request{
		Source: wanted.Source, Policy: wanted.Tarball.CRDDownloadPolicy, Digest: wanted.Digest,
		Progress: func(p crdtarball.Progress) {
			f.mu.Lock()
			j.progress = p
			f.mu.Unlock()
			f.enqueue(key)
		},
	})
	f.mu.Lock()
	j.done, j.resolved, j.err = true, resolved, err
	if err != nil {
		wait := min(minRetryDelay<<min(j.failures, 8), maxAgain)
		var failed *crdtarball.Error
		if errors.As(err, &failed) {
			wait = max(wait, failed.RetryAfter)
		}
		j.failures, j.retryAt = j.failures+1, f.options.Clock.Now().Add(wait)
		if f.ctx.Err() == nil {
			f.options.Clock.AfterFunc(wait, func() { f.enqueue(key) })
		}
	}
	f.mu.Unlock()
	f.enqueue(key)
}

// Forget ends the fetch of an Instance, if there is one.
func (f *Fetcher) Forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.jobs[key]; j != nil {
		j.cancel()
		delete(f.jobs, key)
	}
}

// Cluster reads Secrets and ConfigMaps for sources.
type Cluster struct{ Reader client.Reader }

// Secret implements crdtarball.Secrets.
func (c Cluster) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := c.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("Secret %s/%s: %w", namespace, name, err)
	}
	return secret, nil
}

// ConfigMap implements crdtarball.ConfigMaps.
func (c Cluster) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	if err := c.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, cm); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, name, err)
	}
	return cm, nil
}
