package explore

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

func newTLSServer(handler http.Handler, certificate tls.Certificate) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	return s
}

// reflected says why the Instance's status does not show a status of an object of a kind; empty if it does.
func reflected(t testing.TB, i *v1beta1.Instance, kind, want string) string {
	t.Helper()
	now := env.Read(t, suite, &v1beta1.Instance{}, i.Namespace, i.Name)
	for _, r := range now.Status.Resources {
		if r.Kind == kind && r.Status != nil && equalJSON(string(r.Status.Raw), want) {
			return ""
		} else if r.Kind == kind && r.Status != nil {
			return string(r.Status.Raw)
		}
	}
	return "there is none"
}

func equalJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	two, _ := json.Marshal(y)
	return string(one) == string(two)
}
