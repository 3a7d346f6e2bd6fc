package explore

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/cmd/explore-sample/sample"
	"kudo.dev/kudo/pkg/explore/server"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// ownAddress is an address of this machine that other machines reach; empty if it has none.
func ownAddress(t testing.TB) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	env.Must(t, err)
	for _, a := range all {
		if ip, is := a.(*net.IPNet); is && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	return ""
}

// serveService serves a webhook on all addresses, with the certificate of a Service, and returns its port and bundle.
func serveService(t testing.TB, namespace, name string, handler http.Handler) (port int, bundle string) {
	t.Helper()
	certificate, pemBundle, err := sample.SelfSigned([]string{name + "." + namespace + ".svc"}, time.Now())
	env.Must(t, err)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", ":0")
	env.Must(t, err)
	s := httptest.NewUnstartedServer(handler)
	env.Must(t, s.Listener.Close())
	s.Listener = listener
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return listener.Addr().(*net.TCPAddr).Port, base64.StdEncoding.EncodeToString(pemBundle)
}

var _ = It("A webhook is asked at the address of its Service, which is watched, and never where a tenant must not lead the manager", Serial, Label("C67"), func() {
	t := GinkgoTB()
	define(t, gadgets)
	ns := suite.NewNamespace(t)
	port, bundle := serveService(t, ns, "hook", server.Operations{
		v1alpha1.ExploreHealthy: func(context.Context, *server.Request) (*v1alpha1.ExploreResponse, error) {
			return server.Healthy(true, ""), nil
		},
	})
	client := fmt.Sprintf("clientConfig: {service: {namespace: %s, name: hook, port: %d}, caBundle: %s}", ns, port, bundle)
	configure(t, strings.Replace(strings.Replace(gadgetHook("[ExploreHealthy]", "URL", "BUNDLE"), `clientConfig: {url: "URL", caBundle: BUNDLE}`, client, 1), "timeoutSeconds: 1", "timeoutSeconds: 20", 1))
	i := install(t, operator(ns, [][2]string{{"gadget", gadget}}, gen.Param("SIZE", "3", "")), nil)
	says(t, i, "webhook gadgets/gadgets.example.com", "find service "+ns+"/hook", "it does not exist")

	create(t, "apiVersion: v1\nkind: Service\nmetadata: {name: hook, namespace: "+ns+"}\nspec: {clusterIP: None}\n")
	says(t, i, "it is headless")
	service := live(t, "v1", "Service", ns, "hook")
	env.Must(t, suite.Delete(ctx, service))
	for _, name := range []string{"localhost", "127.0.0.1", "169.254.169.254"} {
		create(t, "apiVersion: v1\nkind: Service\nmetadata: {name: hook, namespace: "+ns+"}\nspec: {type: ExternalName, externalName: "+name+"}\n")
		says(t, i, "its externalName", name, "which is refused")
		env.Must(t, suite.Delete(ctx, service))
	}
	said, code := suite.Kudo("explore", "run", "-n", ns, "--operation", "InterpretHealth", "--live", "gadget.explore.example.com/gadget")
	env.Contains(t, said, "webhook gadgets/gadgets.example.com is not asked", "service "+ns+"/hook cannot be reached from here (it does not exist")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}

	address := ownAddress(t)
	if address == "" {
		t.Fatal("this machine has no address besides loopback")
	}
	create(t, "apiVersion: v1\nkind: Service\nmetadata: {name: hook, namespace: "+ns+"}\nspec: {type: ExternalName, externalName: "+address+"}\n")
	complete(t, i, 1)
	said, code = suite.Kudo("explore", "run", "-n", ns, "--operation", "InterpretHealth", "--live", "gadget.explore.example.com/gadget")
	env.Contains(t, said, "answered by: webhook (gadgets/gadgets.example.com)", "healthy: true")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
})
