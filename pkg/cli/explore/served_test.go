package explore

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// cluster serves discovery, as an API server: kinds by group and version. A version without kinds does not respond.
func cluster(t *testing.T, kinds map[string]map[string][]string) string {
	t.Helper()
	mux := http.NewServeMux()
	serve := func(path string, value any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				t.Errorf("%s %s: discovery only reads", r.Method, r.URL)
			}
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(value); err != nil {
				t.Error(err)
			}
		})
	}
	groups := &metav1.APIGroupList{}
	for name, versions := range kinds {
		group := metav1.APIGroup{Name: name}
		for version, resources := range versions {
			gv := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
			group.Versions, group.PreferredVersion = append(group.Versions, gv), gv
			if resources == nil {
				mux.HandleFunc("/apis/"+gv.GroupVersion, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
				continue
			}
			list := &metav1.APIResourceList{GroupVersion: gv.GroupVersion}
			for _, kind := range resources {
				plural := strings.ToLower(kind) + "s"
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural, Kind: kind}, metav1.APIResource{Name: plural + "/scale", Kind: "Scale"})
			}
			serve("/apis/"+gv.GroupVersion, list)
		}
		groups.Groups = append(groups.Groups, group)
	}
	serve("/api", &metav1.APIVersions{})
	serve("/apis", groups)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestCheckLive (C69) checks what is said of rules for versions that a cluster does not serve.
func TestCheckLive(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	const kettle = "Kettle.kitchen.example.com"
	for name, tc := range map[string]struct {
		reason, config string
		kinds          map[string]map[string][]string
		args           []string
		code           int
		want, not      []string
	}{
		"Served": {"a rule for a kind that is there", "kitchen.example.com/v1", map[string]map[string][]string{"kitchen.example.com": {"v1": {"Kettle"}}}, nil, 0,
			[]string{"Config/a spec.explorations[0]   " + kettle + " ", "1 Configs are valid"}, []string{"arning"}},
		"OtherVersion": {"a rule for another version matches nothing", "kitchen.example.com/v1beta1", map[string]map[string][]string{"kitchen.example.com": {"v1": {"Kettle"}, "v2": {"Kettle"}}}, nil, 0,
			[]string{"Config/a spec.explorations[0]: the cluster does not serve " + kettle + " in v1beta1: the rule matches nothing; it serves v", "1 Configs are valid"}, nil},
		"Strict": {"which is an error if warnings are", "kitchen.example.com/v1beta1", map[string]map[string][]string{"kitchen.example.com": {"v1": {"Kettle"}}}, []string{"--strict"}, command.ExitError,
			[]string{"the rule matches nothing; it serves v1", "found 1 errors in 1 Configs"}, nil},
		"NoKind": {"a kind that is not there", "kitchen.example.com/v1", nil, nil, 0,
			[]string{"the cluster does not serve " + kettle + ": the rule matches nothing until its CustomResourceDefinition is created"}, nil},
		"Subresource": {"the kind of a subresource is none of the group", "kitchen.example.com/v1", map[string]map[string][]string{"kitchen.example.com": {"v1": {"Pot"}}}, nil, 0,
			[]string{"the cluster does not serve " + kettle}, nil},
		"NotKnown": {"an API server behind the first that does not respond", "kitchen.example.com/v1", map[string]map[string][]string{"kitchen.example.com": {"v1": nil}}, nil, 0,
			[]string{"it is not known whether the cluster serves " + kettle + " v1: "}, []string{"matches nothing"}},
		"Bundled": {"of bundled rules, each kind has its versions", "kitchen.example.com/v1", map[string]map[string][]string{"kafka.strimzi.io": {"v1": {"Kafka"}}}, nil, 0,
			[]string{"bundled", "Kafka.kafka.strimzi.io", "Certificate.cert-manager.io"}, []string{"bundled: "}},
		"BundledTooOld": {"a kind that the cluster has only in a newer version", "kitchen.example.com/v1", map[string]map[string][]string{"kafka.strimzi.io": {"v9": {"Kafka"}}}, nil, 0,
			[]string{"bundled: the cluster serves Kafka.kafka.strimzi.io in v9, and the rules that come with kudo are for v1, v1beta2: they match nothing; write a Config"}, nil},
		"BundledCovered": {"for which a Config answers", "kafka.strimzi.io/v9", map[string]map[string][]string{"kafka.strimzi.io": {"v9": {"Kafka", "Kettle"}}}, []string{"-f", "kafka.yaml"}, 0,
			[]string{"2 Configs are valid"}, []string{"match nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "a.yaml", strings.Replace(healthConfig("a", "Kettle"), "g/v1", tc.config, 1))
			write(t, "kafka.yaml", strings.Replace(healthConfig("b", "Kafka"), "g/v1", "kafka.strimzi.io/v9", 1))
			args := append([]string{"explore", "check", "--live", "-f", "a.yaml", "--server", cluster(t, tc.kinds)}, tc.args...)
			out, errs := commandtest.Expect(t, New, tc.code, "", args...)
			for _, want := range tc.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%s: no %q in\n%s%s", tc.reason, want, out, errs)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(out+errs, not) {
					t.Errorf("%s: %q in\n%s%s", tc.reason, not, out, errs)
				}
			}
		})
	}
}

// TestCheckLiveWithoutCluster (C69) checks that a cluster that does not respond is an error, which names what was asked.
func TestCheckLiveWithoutCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Chdir(t.TempDir())
	write(t, "a.yaml", healthConfig("a", "Kettle"))
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if _, errs := commandtest.Expect(t, New, command.ExitError, "", "explore", "check", "--live", "-f", "a.yaml", "--server", server.URL); !strings.Contains(errs, "ask the cluster which kinds it serves") {
		t.Errorf("the error is %s", errs)
	}
}
