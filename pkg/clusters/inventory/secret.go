package inventory

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Keys of a Secret with credentials of a cluster.
const (
	tokenKey      = "token"
	serverKey     = "server"
	kubeconfigKey = "kubeconfig"
)

// maxKubeconfig and maxToken bound what is read of a Secret, in bytes.
const maxKubeconfig, maxToken = 256 << 10, 16 << 10

// credentials adds the credentials of a Secret to the way to a cluster. A Secret is for one server, which it names, so that a profile
// cannot have the credentials of another cluster, or of the manager itself, sent to a server of its own.
func credentials(object string, data map[string][]byte, c Cluster, config *rest.Config) error {
	token, hasToken := data[tokenKey]
	file, hasFile := data[kubeconfigKey]
	switch {
	case hasToken && hasFile:
		return &AccessError{object, tokenKey, "is there beside " + kubeconfigKey, "delete one of them"}
	case hasFile:
		return fromKubeconfig(object, file, c, config)
	case !hasToken:
		return &AccessError{object, "data", "has neither " + tokenKey + " nor " + kubeconfigKey, "add one of them"}
	}
	server, named := data[serverKey]
	if !named {
		return &AccessError{object, serverKey, "is missing: it says which server may get the token", "set it to " + c.Server}
	}
	if err := sameServer(object, serverKey, strings.TrimSpace(string(server)), c.Server); err != nil {
		return err
	}
	return setToken(object, tokenKey, string(token), config)
}

func sameServer(object, field, server, profile string) error {
	if strings.TrimSuffix(server, "/") != strings.TrimSuffix(profile, "/") {
		return &AccessError{object, field, fmt.Sprintf("is %q, and the ClusterProfile has %q", server, profile),
			"set the server of the profile, or name another Secret in the profile"}
	}
	return nil
}

// badToken and tokenRemedy are what an error says of a token.
const badToken, tokenRemedy = "is no token", "set 1 to 16384 characters of ASCII without spaces"

func setToken(object, field, token string, config *rest.Config) error {
	token, ok := validToken(token)
	if !ok {
		return &AccessError{object, field, badToken, tokenRemedy}
	}
	config.BearerToken = token
	return nil
}

// validToken returns a token without the space around it, and reports whether it can be sent.
func validToken(token string) (string, bool) {
	token = strings.TrimSpace(token)
	bad := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return token, token != "" && len(token) <= maxToken && !strings.ContainsFunc(token, bad)
}

// fromKubeconfig takes server, authority, token, client certificate and key of the current context. Whatever would run a program, read a
// file, act as another user or trust any server is refused, wherever in the kubeconfig it stands.
func fromKubeconfig(object string, data []byte, c Cluster, config *rest.Config) error {
	refuse := func(field, problem, remedy string) error {
		return &AccessError{object, strings.TrimSuffix(kubeconfigKey+": "+field, ": "), problem, remedy}
	}
	if len(data) > maxKubeconfig {
		return refuse("", fmt.Sprintf("has %d bytes", len(data)), fmt.Sprintf("keep it below %d", maxKubeconfig))
	}
	file := clientcmdv1.Config{}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return refuse("", "cannot be read: "+withoutValues(err), "write a kubeconfig with clusters, contexts and users")
	}
	for i, named := range file.Clusters {
		if field, problem, remedy := badCluster(named.Cluster); field != "" {
			return refuse(fmt.Sprintf("clusters[%d].cluster.%s", i, field), problem, remedy)
		}
	}
	for i, named := range file.AuthInfos {
		if field, problem, remedy := badUser(named.AuthInfo); field != "" {
			return refuse(fmt.Sprintf("users[%d].user.%s", i, field), problem, remedy)
		}
	}
	return take(refuse, file, c, config)
}

// withoutValues returns an error of YAML without what stands in the document, which may be secret.
func withoutValues(err error) string {
	text := err.Error()
	for _, known := range []string{"unknown field", "already set in map", "did not find expected", "cannot unmarshal", "excessive aliasing"} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return "it is no YAML"
}

// badCluster returns the field of a cluster that is refused, why, and what to do.
func badCluster(c clientcmdv1.Cluster) (field, problem, remedy string) {
	const paste = "paste the content of the file as certificate-authority-data"
	switch server := badServer(c.Server); {
	case server != "":
		return "server", server, "set an address such as https://host:6443"
	case c.InsecureSkipTLSVerify:
		return "insecure-skip-tls-verify", "would let anyone answer for the cluster", "set certificate-authority-data instead"
	case c.CertificateAuthority != "":
		return "certificate-authority", "is a file, which the manager does not read", paste
	}
	if problem := badAuthority(c.CertificateAuthorityData); problem != "" {
		return "certificate-authority-data", problem, "set certificates in PEM, as base64"
	}
	return "", "", ""
}

// badUser returns the field of a user that is refused, why, and what to do.
func badUser(u clientcmdv1.AuthInfo) (field, problem, remedy string) {
	const isFile, impersonates = "is a file, which the manager does not read", "acts as another user"
	const take = "delete it, and give that user's own credentials"
	switch {
	case u.Exec != nil:
		return "exec", "runs a program", "set token, or name the program in --clusterprofile-provider-file"
	case u.AuthProvider != nil:
		return "auth-provider", "is no longer supported by Kubernetes", "set token"
	case u.TokenFile != "":
		return "tokenFile", isFile, "set token"
	case u.ClientCertificate != "":
		return "client-certificate", isFile, "set client-certificate-data"
	case u.ClientKey != "":
		return "client-key", isFile, "set client-key-data"
	case u.Impersonate != "":
		return "as", impersonates, take
	case u.ImpersonateUID != "":
		return "as-uid", impersonates, take
	case len(u.ImpersonateGroups) > 0:
		return "as-groups", impersonates, take
	case len(u.ImpersonateUserExtra) > 0:
		return "as-user-extra", impersonates, take
	case u.Username != "":
		return "username", "is no longer supported by Kubernetes", "set token"
	case u.Password != "":
		return "password", "is no longer supported by Kubernetes", "set token"
	}
	return "", "", ""
}

// take takes the credentials of the current context, or of the only one.
func take(refuse func(field, problem, remedy string) error, file clientcmdv1.Config, c Cluster, config *rest.Config) error {
	current := file.CurrentContext
	if current == "" && len(file.Contexts) == 1 {
		current = file.Contexts[0].Name
	}
	at := slices.IndexFunc(file.Contexts, func(n clientcmdv1.NamedContext) bool { return n.Name == current })
	if at < 0 {
		return refuse("current-context", fmt.Sprintf("%q is no context", current), "name one of contexts")
	}
	context := file.Contexts[at].Context
	cluster := slices.IndexFunc(file.Clusters, func(n clientcmdv1.NamedCluster) bool { return n.Name == context.Cluster })
	user := slices.IndexFunc(file.AuthInfos, func(n clientcmdv1.NamedAuthInfo) bool { return n.Name == context.AuthInfo })
	if cluster < 0 || user < 0 {
		return refuse(fmt.Sprintf("contexts[%d].context", at), "names a cluster or a user that is not there", "add both")
	}
	server, field := file.Clusters[cluster].Cluster, fmt.Sprintf("clusters[%d].cluster.", cluster)
	if strings.TrimSuffix(server.Server, "/") != strings.TrimSuffix(c.Server, "/") {
		return refuse(field+"server", fmt.Sprintf("is %q, and the ClusterProfile has %q", server.Server, c.Server),
			"set the server of the profile, or name another Secret in the profile")
	}
	for name, differs := range map[string]bool{
		"tls-server-name": server.TLSServerName != "" && server.TLSServerName != c.TLSServerName,
		"proxy-url":       server.ProxyURL != "" && server.ProxyURL != c.ProxyURL,
	} {
		if differs {
			return refuse(field+name, "is not that of the ClusterProfile", "delete it: it is the profile that says how to reach the cluster")
		}
	}
	if len(server.CertificateAuthorityData) > 0 {
		config.CAData = server.CertificateAuthorityData
	}
	return takeUser(refuse, file.AuthInfos[user].AuthInfo, fmt.Sprintf("users[%d].user.", user), config)
}

func takeUser(refuse func(field, problem, remedy string) error, u clientcmdv1.AuthInfo, field string, config *rest.Config) error {
	hasCertificate := len(u.ClientCertificateData) > 0 || len(u.ClientKeyData) > 0
	if u.Token == "" && !hasCertificate {
		return refuse(strings.TrimSuffix(field, "."), "has no credentials", "set token, or client-certificate-data and client-key-data")
	}
	if hasCertificate {
		if _, err := tls.X509KeyPair(u.ClientCertificateData, u.ClientKeyData); err != nil {
			return refuse(field+"client-certificate-data", "does not go with client-key-data", "set a certificate and its key in PEM, as base64")
		}
		config.CertData, config.KeyData = u.ClientCertificateData, u.ClientKeyData
	}
	if u.Token == "" {
		return nil
	}
	token, ok := validToken(u.Token)
	if !ok {
		return refuse(field+"token", badToken, tokenRemedy)
	}
	config.BearerToken = token
	return nil
}
