package crdtarball

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func TestConfigMaps(t *testing.T) {
	data := tarball(t, "a.example.org")
	third := len(data) / 3
	part := func(version string, keys ...[]byte) *corev1.ConfigMap {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}, BinaryData: map[string][]byte{}}
		for i, key := range keys {
			m.BinaryData[fmt.Sprintf("k%d", i)] = key
		}
		return m
	}
	world := objects{configMaps: map[string]*corev1.ConfigMap{
		"ns/one": part("1", data[:third]), "ns/two": part("1", []byte("x"), data[third:2*third]), "ns/three": part("1", data[2*third:]),
		"ns/text": {Data: map[string]string{"k0": "x"}},
	}}
	source := func(pin string, parts ...v1beta1.ConfigMapPart) Source {
		s, err := newConfigMapSource(v1beta1.ConfigMapSource{ConfigMaps: parts, SHA256: pin}, "ns", Access{ConfigMaps: world})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two, three := v1beta1.ConfigMapPart{Name: "one"}, v1beta1.ConfigMapPart{Name: "two", Key: "k1"}, v1beta1.ConfigMapPart{Name: "three"}
	c := openCache(t, t.TempDir())
	got := resolve(t, c, source(sum(data), one, two, three), v1beta1.DownloadAlways)
	if got.URL != "configmap://ns/one,two:k1,three" || got.Digest != "sha256:"+sum(data) {
		t.Errorf("parts are put together in order: %+v", got)
	}
	if got := resolve(t, c, source("", one, two, three), v1beta1.DownloadAlways); got.Fetched || got.Stale != nil {
		t.Errorf("what did not change is not written again: %+v", got)
	}
	world.configMaps["ns/one"].ResourceVersion = "2"
	if got := resolve(t, c, source("", one, two, three), v1beta1.DownloadAlways); !got.Fetched {
		t.Errorf("what changed is: %+v", got)
	}
	refuse(t, c, source("", one, three), "", ReasonArchive, "")
	refuse(t, c, source("", v1beta1.ConfigMapPart{Name: "two"}), "", ReasonCredentials, "has 2 keys in binaryData")
	refuse(t, c, source("", v1beta1.ConfigMapPart{Name: "two", Key: "k7"}), "", ReasonCredentials, "has no key k7")
	refuse(t, c, source("", v1beta1.ConfigMapPart{Name: "text", Key: "k0"}), "", ReasonCredentials, "put a part of a tarball into binaryData")
	refuse(t, c, source("", v1beta1.ConfigMapPart{Name: "gone"}), "", ReasonCredentials, "does not exist")
}
