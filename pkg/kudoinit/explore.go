package kudoinit

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

const (
	// exploreCertFlag and exploreKeyFlag are the manager's flags for the client certificate that explore webhooks are shown.
	exploreCertFlag, exploreKeyFlag = "explore-client-cert-file", "explore-client-key-file"
	// exploreVolume holds the certificate, in exploreFolder.
	exploreVolume, exploreFolder = "explore-client", "/etc/kudo/explore-client"
)

// withArgs returns the manager's arguments with those for the client certificate, and with those that the Values add.
func (v Values) withArgs(args []any) []any {
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

// addExploreVolume adds the volume with the client certificate to a pod template.
func (v Values) addExploreVolume(template map[string]any) error {
	if v.ExploreClientSecret == "" {
		return nil
	}
	volumes, _, err := unstructured.NestedSlice(template, "spec", "volumes")
	if err != nil {
		return err
	}
	volumes = append(volumes, map[string]any{"name": exploreVolume, "secret": map[string]any{"secretName": v.ExploreClientSecret}})
	return unstructured.SetNestedSlice(template, volumes, "spec", "volumes")
}
