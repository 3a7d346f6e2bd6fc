package kudoinit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager is the field manager of what is installed.
const manager = "kudo-init"

// createdAnnotation on the namespace says that init has made it, and so may remove it.
const createdAnnotation = "kudo.dev/created-by"

// Progress is called for each object that was applied.
type Progress func(obj *unstructured.Unstructured, created bool)

// Change is what an installation is going to write.
type Change struct {
	// Objects in the order in which they are to be applied.
	Objects []*unstructured.Unstructured
	// live maps the objects that exist to their live state.
	live map[*unstructured.Unstructured]*unstructured.Unstructured
	// shared are those that others have set fields of besides init, and that are applied without force.
	shared map[*unstructured.Unstructured]bool
}

// Compare reads what is on the cluster and returns the change to objects. It leaves out the fields that others have set and that init
// leaves to them, and the rights that an administrator has removed from ClusterRoles. The error names all fields that others have set to
// other values than init would, unless force is set.
func (l *InstalledState) Compare(ctx context.Context, c client.Client, objs []*unstructured.Unstructured, values Values,
	force bool) (*Change, error) {
	change := &Change{live: map[*unstructured.Unstructured]*unstructured.Unstructured{}, shared: map[*unstructured.Unstructured]bool{}}
	record := parseRules(l.rules)
	var conflicts []error
	for _, obj := range objs {
		sent, live := obj.DeepCopy(), &unstructured.Unstructured{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)
		found := err == nil
		switch {
		case !found && !absent(err):
			err = fmt.Errorf("look for it: %w", err)
		case !found:
			err = nil
		case narrowed(live):
			continue
		case obj.GetKind() == "ClusterRole":
			_, err = keepRules(sent, live, record)
		case !force && isTuned(obj) && isContested(live):
			var more []error
			var decided bool
			more, decided, err = resolve(ctx, c, sent, live, values)
			conflicts = append(conflicts, more...)
			change.shared[sent] = !decided
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		if found {
			change.live[sent] = live
		}
		change.Objects = append(change.Objects, sent)
	}
	return change, refuse(errors.Join(conflicts...))
}

// Split returns the change up to the first object of a kind, and the rest.
func (p *Change) Split(kind string) (first, rest *Change) {
	n := 1 + slices.IndexFunc(p.Objects, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == kind })
	return &Change{p.Objects[:n], p.live, p.shared}, &Change{p.Objects[n:], p.live, p.shared}
}

// Apply writes the change. It updates objects that exist.
func (p *Change) Apply(ctx context.Context, c client.Client, progress Progress) error {
	for _, obj := range p.Objects {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		absent := apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(obj), live))
		createdByInit := absent || live.Annotations[createdAnnotation] == manager
		if err := put(ctx, c, prepare(obj, createdByInit), p.options(obj)); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		progress(obj, absent)
	}
	return nil
}

// prepare returns an object as it is sent. A Namespace that init creates, or has created, says so.
func prepare(obj *unstructured.Unstructured, createdByInit bool) *unstructured.Unstructured {
	sent := obj.DeepCopy()
	if obj.GetKind() == "Namespace" && createdByInit {
		annotate(sent, createdAnnotation, manager)
	}
	return sent
}

// options are those of the apply of an object.
func (p *Change) options(obj *unstructured.Unstructured) []client.ApplyOption {
	options := []client.ApplyOption{client.FieldOwner(manager)}
	if !p.shared[obj] {
		options = append(options, client.ForceOwnership)
	}
	return options
}

// put applies an object, and replaces it by the answer of the API server. It retries while cert-manager's own webhook does not answer,
// since cert-manager may just have been installed.
func put(ctx context.Context, c client.Client, obj *unstructured.Unstructured, options []client.ApplyOption) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for tries := 0; ; tries++ {
		sent := obj.DeepCopy()
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), options...)
		if err == nil {
			obj.Object = sent.Object
		}
		if tries == certManagerTries || !apierrors.IsInternalError(err) || !strings.HasPrefix(obj.GetAPIVersion(), certManagerGroup+"/") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

const (
	certManagerGroup, certManagerVersion = "cert-manager.io", "v1"
	// certManagerTries is how many seconds cert-manager's webhook may take to come up.
	certManagerTries = 60
)

// CertManager says what is wrong if the cluster does not serve cert-manager's kinds.
func CertManager(c client.Client) error {
	for _, kind := range []string{"Issuer", "Certificate"} {
		_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: certManagerGroup, Kind: kind}, certManagerVersion)
		if meta.IsNoMatchError(err) {
			return refuse(fmt.Errorf("cert-manager is not installed on this cluster, or does not serve %s/%s: install cert-manager 1.0 or later, "+
				"or leave --cert-manager out, and the manager issues the certificate itself", certManagerGroup, certManagerVersion))
		}
		if err != nil {
			return fmt.Errorf("look for cert-manager: %w", err)
		}
	}
	return nil
}

// Monitoring returns an error if the cluster does not serve the kinds of the Prometheus Operator.
func Monitoring(c client.Client) error {
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: "monitoring.coreos.com", Kind: kind}, "v1")
		if meta.IsNoMatchError(err) {
			return refuse(fmt.Errorf("the cluster does not serve %s of monitoring.coreos.com/v1: install the Prometheus Operator, or leave "+
				"--monitoring out (--set monitoring=null takes it back)", kind))
		}
		if err != nil {
			return fmt.Errorf("look for the Prometheus Operator: %w", err)
		}
	}
	return nil
}
