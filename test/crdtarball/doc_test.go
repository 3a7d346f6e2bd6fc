package crdtarball

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/prometheus/client_golang/prometheus"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

// registry takes the names of metrics.
type registry struct {
	prometheus.Registerer
	names []string
}

var metricName = regexp.MustCompile(`fqName: "([^"]+)"`)

// Register implements prometheus.Registerer.
func (r *registry) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 10)
	c.Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		r.names = append(r.names, metricName.FindStringSubmatch(d.String())[1])
	}
	return nil
}

// fields are the JSON paths of what a type holds.
func fields(of reflect.Type, path string) (all []string) {
	switch of.Kind() {
	case reflect.Pointer:
		return fields(of.Elem(), path)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Struct {
			return fields(of.Elem(), path+"[]")
		}
	case reflect.Struct:
		if of.PkgPath() != reflect.TypeFor[v1beta1.CRDTarball]().PkgPath() {
			break
		}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			all = append(all, fields(of.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
		return all
	}
	return []string{path}
}

var _ = It("The document has all fields, flags with their defaults, metrics and reasons of CRD tarballs", func() {
	t := GinkgoTB()
	raw, err := os.ReadFile(filepath.Join(sourcetree.Root(), "docs", "crd-tarballs.md"))
	env.Must(t, err)
	text := string(raw)
	for _, field := range fields(reflect.TypeFor[v1beta1.CRDTarball](), "") {
		env.Contains(t, text, "`"+field+"`")
	}
	for _, field := range fields(reflect.TypeFor[v1beta1.CRDTarballStatus](), "") {
		env.Contains(t, text, "`"+strings.TrimPrefix(field, "download.")+"`")
	}
	metrics := &registry{}
	_, err = crdtarball.NewMetrics(metrics)
	env.Must(t, err)
	for _, name := range metrics.names {
		env.Contains(t, text, "`"+name)
	}
	for _, reason := range []crdtarball.Reason{crdtarball.ReasonTimeout, crdtarball.ReasonConnection, crdtarball.ReasonStatus, crdtarball.ReasonCertificate, crdtarball.ReasonRefused, crdtarball.ReasonCredentials,
		crdtarball.ReasonPin, crdtarball.ReasonArchive, crdtarball.ReasonDocuments, crdtarball.ReasonSpec, crdtarball.ReasonNotCached, crdtarball.ReasonDisk, crdtarball.ReasonCanceled} {
		env.Contains(t, text, "`"+string(reason)+"`")
	}
	flagsOf(t, text)
})

// flagsOf compares the flags that the manager prints with the table of the document.
func flagsOf(t testing.TB, text string) {
	t.Helper()
	help, _ := exec.Command(filepath.Join(suite.Bin, "manager"), "--help").CombinedOutput() // its exit code is that of a mistake
	found := 0
	value := regexp.MustCompile(`\(default "?([^")]+)"?\)`)
	for _, part := range strings.Split(string(help), "\n  -")[1:] {
		name, _, _ := strings.Cut(part, " ")
		if !strings.Contains(name, "crd-") && name != "cache-dir" {
			continue
		}
		found++
		row := regexp.MustCompile("(?m)^\\| `--" + name + "` \\|.*$").FindString(text)
		if row == "" {
			t.Errorf("the document has no flag --%s", name)
			continue
		}
		if standard := value.FindStringSubmatch(part); standard != nil && !strings.Contains(row, standard[1]) {
			t.Errorf("--%s has the default %s, and the document says %s", name, standard[1], row)
		}
	}
	if found < 9 {
		t.Errorf("the manager has %d flags for tarballs only:\n%s", found, help)
	}
	for _, name := range []string{settings.AllowedHostsKey, settings.DefaultCRDURLKey, settings.TokenRealmsKey} {
		if !regexp.MustCompile("(?m)^\\| `--" + name + "` \\|.*$").MatchString(text) {
			t.Errorf("the document has no setting --%s", name)
		}
	}
}
