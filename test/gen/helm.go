package gen

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/operators/helmrelease"
)

// HelmSecret returns the Secret in which Helm stores a revision of a release.
func HelmSecret(release *helmrelease.Release) *corev1.Secret {
	content, err := json.Marshal(release)
	if err != nil {
		panic(err) // texts and numbers: this does not fail
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(content)
	_ = writer.Close() // a buffer takes all
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: release.Namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", release.Name, release.Version),
			Labels: map[string]string{
				"owner": "helm", "name": release.Name, "status": release.Info.Status, "version": strconv.Itoa(release.Version),
			},
		},
		Type: helmrelease.SecretType,
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}

// HelmRelease returns a deployed release of a chart.
func HelmRelease(namespace, name, manifest string) *helmrelease.Release {
	out := &helmrelease.Release{Name: name, Namespace: namespace, Version: 1, Manifest: manifest}
	out.Info.Status = "deployed"
	out.Chart.Metadata.Name, out.Chart.Metadata.Version, out.Chart.Metadata.AppVersion = name, "1.2.3", "4.5.6"
	return out
}
