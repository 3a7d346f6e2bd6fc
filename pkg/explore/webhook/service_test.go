package webhook

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// hosts are the addresses of names.
type hosts map[string][]netip.Addr

func (h hosts) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if h[host] == nil {
		return nil, errors.New("no such host")
	}
	return h[host], nil
}

// TestClusterServices checks C67: which address each type of Service has, and what is refused, among it names by which a tenant would lead
// the manager to itself or to the metadata of its machine (T35).
func TestClusterServices(t *testing.T) {
	of := func(kind corev1.ServiceType, ip string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, ClusterIP: ip, Ports: ports}}
	}
	external := func(name string) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: name}}
	}
	tls, udp := corev1.ServicePort{Port: 8443, Protocol: corev1.ProtocolTCP}, corev1.ServicePort{Port: 8443, Protocol: corev1.ProtocolUDP}
	addresses := func(texts ...string) (out []netip.Addr) {
		for _, text := range texts {
			out = append(out, netip.MustParseAddr(text))
		}
		return out
	}
	names := hosts{
		"hook.example.org": addresses("2606:4700::1", "::ffff:1.1.1.2", "1.1.1.1"), "hook.other.svc": addresses("10.96.0.7"), "localhost": addresses("127.0.0.1"),
		"rebound.example.org": addresses("1.1.1.1", "169.254.169.254"), "mapped.example.org": addresses("::ffff:127.0.0.1"),
		"nat64.example.org": addresses("64:ff9b::a9fe:a9fe"), "aws.example.org": addresses("fd00:ec2::254"), "none.example.org": {}, "any.example.org": addresses("0.0.0.0"),
	}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "hook")
	for _, tc := range []struct {
		reason     string
		service    *corev1.Service
		err        error
		want, fail string
	}{
		{"a ClusterIP", of(corev1.ServiceTypeClusterIP, "10.96.0.9", tls), nil, "10.96.0.9:8443", ""},
		{"a NodePort has one, too", of(corev1.ServiceTypeNodePort, "10.96.0.9", udp, tls), nil, "10.96.0.9:8443", ""},
		{"a LoadBalancer, by IPv6", of(corev1.ServiceTypeLoadBalancer, "fd00::9", tls), nil, "[fd00::9]:8443", ""},
		{"no type is ClusterIP", of("", "10.96.0.9", corev1.ServicePort{Port: 8443}), nil, "10.96.0.9:8443", ""},
		{"headless", of(corev1.ServiceTypeClusterIP, corev1.ClusterIPNone, tls), nil, "", "headless"},
		{"no address yet", of(corev1.ServiceTypeClusterIP, "", tls), nil, "", "no clusterIP yet"},
		{"another port", of(corev1.ServiceTypeClusterIP, "10.96.0.9", corev1.ServicePort{Port: 443}), nil, "", "no TCP port 8443"},
		{"another protocol", of(corev1.ServiceTypeClusterIP, "10.96.0.9", udp), nil, "", "no TCP port 8443"},
		{"missing", nil, missing, "", "it does not exist"},
		{"an error", nil, errors.New("down"), "", "down"},
		{"a name outside", external("hook.example.org"), nil, "1.1.1.1:8443 1.1.1.2:8443 [2606:4700::1]:8443", ""},
		{"a name with a dot", external("hook.example.org."), nil, "1.1.1.1:8443 1.1.1.2:8443 [2606:4700::1]:8443", ""},
		{"a Service of another namespace", external("hook.other.svc"), nil, "10.96.0.7:8443", ""},
		{"a name that is not known", external("unknown.example.org"), nil, "", "no such host"},
		{"a name without an address", external("none.example.org"), nil, "", "has no address"},
		{"the manager itself", external("localhost"), nil, "", "leads to 127.0.0.1, which is refused"},
		{"the manager itself, as IPv6", external("mapped.example.org"), nil, "", "which is refused"},
		{"the metadata of the machine beside a public address", external("rebound.example.org"), nil, "", "leads to 169.254.169.254, which is refused"},
		{"the metadata behind NAT64", external("nat64.example.org"), nil, "", "which is refused"},
		{"the metadata by IPv6", external("aws.example.org"), nil, "", "which is refused"},
		{"any address of the machine", external("any.example.org"), nil, "", "which is refused"},
	} {
		s := &ClusterServices{Names: names, Get: func(_ context.Context, namespace, name string) (*corev1.Service, error) {
			if namespace != "ns" || name != "hook" {
				t.Errorf("%s: Service %s/%s was read", tc.reason, namespace, name)
			}
			return tc.service, tc.err
		}}
		list, err := s.Addresses(t.Context(), "ns", "hook", 8443)
		if got := strings.Join(list, " "); got != tc.want || (err == nil) != (tc.fail == "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
			t.Errorf("%s: %s (%v), want %s%s", tc.reason, list, err, tc.want, tc.fail)
		}
	}
}

// TestDial checks C67: all addresses of a service are tried, in their order and in the time that is there, up to a bound.
func TestDial(t *testing.T) {
	listen := func() (address string, accepted chan struct{}) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		accepted = make(chan struct{}, 10)
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				accepted <- struct{}{}
				_ = connection.Close()
			}
		}()
		t.Cleanup(func() { _ = listener.Close() })
		return listener.Addr().String(), accepted
	}
	first, toFirst := listen()
	second, toSecond := listen()
	const closed = "127.0.0.1:1"
	dial := func(addresses ...string) error {
		connection, err := Dial(t.Context(), net.Dialer{Timeout: time.Minute}, addresses)
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
	for _, addresses := range [][]string{{first}, {first, second}, {closed, first}, {closed, closed, first, second}} {
		if err := dial(addresses...); err != nil {
			t.Errorf("%v: %v", addresses, err)
			continue
		}
		<-toFirst
	}
	if err := dial(closed, second); err != nil {
		t.Error(err)
	}
	<-toSecond
	if len(toFirst)+len(toSecond) > 0 {
		t.Error("an address was dialed after one that accepted")
	}
	if err := dial(closed, "127.0.0.1:2"); err == nil || !strings.Contains(err.Error(), closed) || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Errorf("an error names each address: %v", err)
	}
	if err := dial(append(slices.Repeat([]string{closed}, maxAddresses), first)...); err == nil {
		t.Error("an address beyond the bound was dialed")
	}
	if err := dial(); err == nil {
		t.Error("a service without an address was connected to")
	}
}

// TestServiceChanged checks C67: the Services that webhooks name are told at each Set, and the change of one affects the kinds of its
// webhooks.
func TestServiceChanged(t *testing.T) {
	var services []types.NamespacedName
	var changes []Change
	l := New(Options{Resources: cluster, Named: func(all []types.NamespacedName) { services = all }, Changed: func(c Change) { changes = append(changes, c) }})
	hook, other := types.NamespacedName{Namespace: "ns", Name: "hook"}, types.NamespacedName{Namespace: "ns", Name: "other"}
	l.ServiceChanged(hook) // nothing is configured yet
	behind := func(service types.NamespacedName, name string) v1alpha1.ResourceExploringWebhook {
		return hookOf(admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name}}, named(name))
	}
	broken := behind(other, "broken")
	broken.ExploreReviewVersions = nil
	l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration("c", behind(hook, "a"), behind(hook, "b"), hookOf(nowhere, named("url")), broken)})
	if diff := cmp.Diff([]types.NamespacedName{hook}, services); diff != "" {
		t.Errorf("named Services, -want +got: %s", diff)
	}
	l.ServiceChanged(other)
	if len(changes) > 0 {
		t.Errorf("changes %v of a Service that no webhook is asked at", changes)
	}
	l.ServiceChanged(hook)
	if len(changes) != 1 || changes[0].String() != "[c/a c/b] []" {
		t.Fatalf("changes %v, want one of both webhooks", changes)
	}
	for kind, want := range map[string]bool{"Foo": true, "Bar": false} {
		if got := changes[0].Affects(t.Context(), schema.GroupVersionKind{Group: "foo.example.com", Version: "v1", Kind: kind}); got != want {
			t.Errorf("%s is affected: %t, want %t", kind, got, want)
		}
	}
	l.Set(nil)
	if len(services) != 0 {
		t.Errorf("Services %v are named by nothing", services)
	}
}
