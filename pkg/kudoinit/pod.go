package kudoinit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// logFormatFlag is the manager's flag for the format of its log.
	logFormatFlag = "zap-encoder"
	// cacheVolume is the name of the volume with the CRD tarballs.
	cacheVolume = "cache"
	// exploreCertFlag and exploreKeyFlag are the manager's flags for the client certificate that explore webhooks are shown.
	exploreCertFlag, exploreKeyFlag = "explore-client-cert-file", "explore-client-key-file"
	// exploreVolume holds the certificate, in exploreFolder.
	exploreVolume, exploreFolder = "explore-client", "/etc/kudo/explore-client"
)

// clusterHosts are reached without a proxy: the API server and the Services of the cluster. The kubelet puts the address of the API
// server in the place of the variable.
var clusterHosts = []string{"$(KUBERNETES_SERVICE_HOST)", "localhost", "127.0.0.1", "::1", ".svc", ".cluster.local"}

var (
	// proxyURL matches a URL without user, path and variables.
	proxyURL = regexp.MustCompile(`^https?://[^\s/@$]+/?$`)
	// proxyHost matches a host, a domain, an address or a CIDR.
	proxyHost = regexp.MustCompile(`^[A-Za-z0-9.*:/_\[\]-]+$`)
)

// validatePod names the fields that this file writes, and that the manager, or the API server, would refuse.
func (v Values) validatePod(add func(name, format string, args ...any)) {
	if v.LogFormat != "" && v.LogFormat != "json" && v.LogFormat != "console" {
		add("logFormat", "%q must be json or console", v.LogFormat)
	}
	if p := v.Proxy; p != nil {
		for _, field := range [][2]string{{"http", p.HTTP}, {"https", p.HTTPS}} {
			if field[1] != "" && !proxyURL.MatchString(field[1]) {
				add("proxy."+field[0], "must be a URL such as http://proxy.example.org:3128; a user and a password would be readable in the "+
					"Deployment and are not taken")
			}
		}
		for n, host := range p.NoProxy {
			if !proxyHost.MatchString(host) {
				add(fmt.Sprintf("proxy.noProxy[%d]", n), "%q must be a host, a domain such as .example.org, an address or a CIDR", host)
			}
		}
	}
	if c := v.CacheVolume; c != nil {
		rest := c.DeepCopy()
		rest.EmptyDir, rest.PersistentVolumeClaim, rest.Ephemeral = nil, nil, nil
		if *rest != (corev1.VolumeSource{}) {
			add("cacheVolume", "must be an emptyDir, a persistentVolumeClaim or an ephemeral volume, which the manager can write")
		}
	}
}

// adaptContainer writes the Values into the container of the manager.
func (v Values) adaptContainer(container map[string]any) error {
	args, _ := container["args"].([]any)
	container["args"] = v.withArgs(args)
	v.mountExploreClient(container)
	v.addProxy(container)
	if v.Resources == nil {
		return nil
	}
	resources, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v.Resources)
	container["resources"] = resources
	return err
}

// addProxy adds the variables that name proxies to the environment of the manager.
func (v Values) addProxy(container map[string]any) {
	p := v.Proxy
	if p == nil || p.HTTP == "" && p.HTTPS == "" {
		return
	}
	env, _, _ := unstructured.NestedSlice(container, "env")
	for _, variable := range [][2]string{
		{"HTTP_PROXY", p.HTTP}, {"HTTPS_PROXY", p.HTTPS}, {"NO_PROXY", strings.Join(slices.Concat(p.NoProxy, clusterHosts), ",")},
	} {
		if variable[1] != "" {
			env = append(env, map[string]any{"name": variable[0], "value": variable[1]})
		}
	}
	container["env"] = env
}

// withArgs returns the manager's arguments with those for the client certificate and the log, and with those that the Values add.
func (v Values) withArgs(args []any) []any {
	if v.LogFormat != "" {
		args = append(args, "--"+logFormatFlag+"="+v.LogFormat)
	}
	if v.ExploreClientSecret != "" {
		args = append(args, "--"+exploreCertFlag+"="+exploreFolder+"/tls.crt", "--"+exploreKeyFlag+"="+exploreFolder+"/tls.key")
	}
	for _, arg := range v.ExtraArgs {
		args = append(args, arg)
	}
	return args
}

// mountExploreClient mounts the client certificate into the container of the manager.
func (v Values) mountExploreClient(container map[string]any) {
	if v.ExploreClientSecret == "" {
		return
	}
	mounts, _, _ := unstructured.NestedSlice(container, "volumeMounts")
	container["volumeMounts"] = append(mounts, map[string]any{"name": exploreVolume, "mountPath": exploreFolder, "readOnly": true})
}

// adaptPod writes the Values into the pod template of the Deployment.
func (v Values) adaptPod(template map[string]any) error {
	for field, entries := range map[string]map[string]string{"labels": v.PodLabels, "annotations": v.PodAnnotations} {
		for key, value := range entries {
			if err := unstructured.SetNestedField(template, value, "metadata", field, key); err != nil {
				return err
			}
		}
	}
	pod := &corev1.PodSpec{
		NodeSelector: v.NodeSelector, Tolerations: v.Tolerations, Affinity: v.Affinity, PriorityClassName: v.PriorityClassName,
		ImagePullSecrets: v.ImagePullSecrets,
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return err
	}
	for name, value := range fields {
		if name == "containers" || value == nil {
			continue
		}
		if err := unstructured.SetNestedField(template, value, "spec", name); err != nil {
			return err
		}
	}
	return v.adaptVolumes(template)
}

// adaptVolumes adds the volume with the client certificate to a pod template, and replaces the volume of the cache.
func (v Values) adaptVolumes(template map[string]any) error {
	volumes, _, err := unstructured.NestedSlice(template, "spec", "volumes")
	if err != nil {
		return err
	}
	if v.CacheVolume != nil && *v.CacheVolume != (corev1.VolumeSource{}) {
		source, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v.CacheVolume)
		if err != nil {
			return err
		}
		source["name"] = cacheVolume
		for n, volume := range volumes {
			if volume.(map[string]any)["name"] == cacheVolume {
				volumes[n] = source
			}
		}
	}
	if v.ExploreClientSecret != "" {
		volumes = append(volumes, map[string]any{"name": exploreVolume, "secret": map[string]any{"secretName": v.ExploreClientSecret}})
	}
	return unstructured.SetNestedSlice(template, volumes, "spec", "volumes")
}
