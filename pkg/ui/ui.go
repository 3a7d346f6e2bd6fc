// Package ui serves a page that shows the Instances of a cluster, their plans, and what they share: an http.Handler over a rest.Config. All
// that it knows of the cluster belongs to one Server, so that a program may have a Server for each user.
package ui

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/repository"
)

//go:embed templates assets
var files embed.FS

// Options say what a Server shows.
type Options struct {
	// Config connects to the cluster, with the rights of the user.
	Config *rest.Config
	// Namespace whose objects are shown; empty for all.
	Namespace string
	// Context is the name of the cluster for people.
	Context string
	// Version of the program.
	Version string
	// Home has the repositories of the user; one without a folder has none.
	Home repository.Home
	// AllowActions lets the page edit Instances, each time after a preview.
	AllowActions bool
	// Clock gives the time from which on a state is so.
	Clock clock.PassiveClock
}

// Server serves the pages of one user. Run fills it.
type Server struct {
	Options
	client   client.Client
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface

	changes       changes
	instances     *feed
	versions      *feed
	installations *feed
	clusters      *clusterRegistry

	templates *template.Template
	pages     *http.ServeMux

	mu      sync.Mutex
	details map[client.ObjectKey]*detail
	lines   map[client.ObjectKey]line
	// reads has a value for each log that is being read.
	reads chan struct{}
	// previews has a value for each preview that is being computed.
	previews chan struct{}
	// computeTime bounds each of them.
	computeTime time.Duration
	// remotes are the repositories of the user.
	remotes *remotes
	// tokens are those of the forms of new Instances.
	tokens tokens
	// running is the context of Run; nil before.
	running context.Context
}

// linger is how long the watches of an Instance's page stay after the last page of it was closed, so that the page, its stream, and a
// reload share them.
const linger = 15 * time.Second

// New returns a Server. It asks the cluster for nothing before Run.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, details: map[client.ObjectKey]*detail{}, lines: map[client.ObjectKey]line{}, reads: make(chan struct{}, maxReads),
		previews: make(chan struct{}, maxPreviews), computeTime: computeTime}
	s.clusters = &clusterRegistry{server: s, retry: clusterRetry, feeds: map[schema.GroupVersionKind]*feed{}}
	s.remotes = &remotes{home: o.Home, agent: "kubectl-kudo/" + o.Version, limit: catalogTime,
		reads: make(chan struct{}, maxRemotes)}
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // the API server's priority and fairness decides
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	transport, err := rest.HTTPClientFor(config)
	if err := errors.Join(err, clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	var clientErr, typedErr, dynamicErr, metadataErr error
	mapper, mapperErr := newMapper(config, mapperTime)
	s.client, clientErr = client.New(config, client.Options{Scheme: scheme, HTTPClient: transport, Mapper: mapper})
	s.typed, typedErr = kubernetes.NewForConfigAndClient(config, transport)
	s.dynamic, dynamicErr = dynamic.NewForConfigAndClient(config, transport)
	s.metadata, metadataErr = metadata.NewForConfigAndClient(config, transport)
	own, ownErr := apiutil.RESTClientForGVK(v1beta1.GroupVersion.WithKind("Instance"), true, false, config,
		serializer.NewCodecFactory(scheme), transport)
	if err := errors.Join(mapperErr, clientErr, typedErr, dynamicErr, metadataErr, ownErr); err != nil {
		return nil, err
	}
	var instancesErr, versionsErr, installationsErr error
	s.instances, instancesErr = s.newKudoFeed(own, "instances", o.Namespace, &v1beta1.Instance{}, &v1beta1.InstanceList{})
	s.versions, versionsErr = s.newKudoFeed(own, "operatorversions", o.Namespace, &v1beta1.OperatorVersion{}, &v1beta1.OperatorVersionList{})
	s.installations, installationsErr = s.newKudoFeed(own, "installations", "", &v1beta1.Installation{}, &v1beta1.InstallationList{})
	if err := errors.Join(instancesErr, versionsErr, installationsErr); err != nil {
		return nil, err
	}
	if err := s.parseTemplates(); err != nil {
		return nil, err
	}
	s.pages = s.routes()
	return s, nil
}

// mapperTime bounds each request by which a mapper finds kinds: such requests have no context.
const mapperTime = 5 * time.Second

// newMapper returns what finds the kinds of the cluster. Each of its requests ends after a time.
func newMapper(config *rest.Config, limit time.Duration) (meta.RESTMapper, error) {
	config = rest.CopyConfig(config)
	config.Timeout = limit
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(config, transport)
}

// newKudoFeed returns a feed of one of kudo's kinds. It needs no discovery.
func (s *Server) newKudoFeed(c rest.Interface, resource, namespace string, object, list runtime.Object) (*feed, error) {
	request := func(options metav1.ListOptions) *rest.Request {
		return c.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).VersionedParams(&options, metav1.ParameterCodec)
	}
	return newFeed(resource, object, source{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			into := list.DeepCopyObject()
			return into, request(options).Do(ctx).Into(into)
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return request(options).Watch(ctx)
		},
	}, reduceKudo, s.Clock, s.changes.notify)
}

// reduceKudo removes what no page shows: the templates of a package may have some 100 KB.
func reduceKudo(obj any) {
	switch o := obj.(type) {
	case *v1beta1.OperatorVersion:
		o.Spec.Templates, o.Spec.Tasks = nil, nil
		if o.Spec.Provenance != nil {
			for i := range o.Spec.Provenance.Signatures {
				o.Spec.Provenance.Signatures[i] = "" // how many there are is shown
			}
		}
	case *v1beta1.Instance:
		for i := range o.Status.Resources {
			o.Status.Resources[i].Status = nil
		}
	}
	if o, ok := obj.(client.Object); ok {
		annotations := o.GetAnnotations()
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		o.SetAnnotations(annotations)
	}
}

// Run fills the Server until the context ends.
func (s *Server) Run(ctx context.Context) {
	s.mu.Lock()
	s.running = ctx
	s.mu.Unlock()
	var group sync.WaitGroup
	for _, f := range []*feed{s.instances, s.versions, s.installations} {
		group.Go(func() { f.run(ctx) })
	}
	group.Go(func() { s.clusters.run(ctx) })
	group.Wait()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.pages.ServeHTTP(w, r) }
