package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig to path with which the client named
// pair reaches server. All data is inside, so that the file can be copied.
func (s *Store) WriteKubeconfig(path, context, server, pair string) error {
	data := map[string][]byte{s.CertFile(CA): nil, s.CertFile(pair): nil, s.KeyFile(pair): nil}
	for file := range data {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading for kubeconfig %s: %w", path, err)
		}
		data[file] = content
	}
	config := api.NewConfig()
	config.Clusters[context] = &api.Cluster{Server: server, CertificateAuthorityData: data[s.CertFile(CA)]}
	config.AuthInfos[context] = &api.AuthInfo{
		ClientCertificateData: data[s.CertFile(pair)],
		ClientKeyData:         data[s.KeyFile(pair)],
	}
	config.Contexts[context] = &api.Context{Cluster: context, AuthInfo: context}
	config.CurrentContext = context
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}
