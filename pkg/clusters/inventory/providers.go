package inventory

import (
	"errors"
	"fmt"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kjson "sigs.k8s.io/json"
)

// SecretProvider is the provider that is built in: it takes credentials of a Secret in the manager's namespace.
const SecretProvider = "kudo-secret"

// maxProviderFile bounds the file of providers, in bytes.
const maxProviderFile = 1 << 20

// policyIgnore is the only policy that is accepted for what a profile adds to a command.
const policyIgnore = "Ignore"

// execVersions are the versions of ExecCredential that a program may speak.
var execVersions = map[string]bool{"client.authentication.k8s.io/v1": true, "client.authentication.k8s.io/v1beta1": true}

// Providers are the programs that give credentials, in the order in which they are tried.
type Providers []Provider

// Provider is a program that gives the credentials of the profiles that offer its name.
type Provider struct {
	Name string
	Exec clientcmdapi.ExecConfig
}

// providerFile is the form of the file (KEP-5339).
type providerFile struct {
	Providers []struct {
		Name                       string    `json:"name"`
		ExecConfig                 *execFile `json:"execConfig"`
		ProfileSourcedCLIArgs      string    `json:"profileSourcedCLIArgsPolicy"`
		ProfileSourcedEnvVarPolicy string    `json:"profileSourcedEnvVarsPolicy"`
	} `json:"providers"`
}

// execFile is the part of ExecConfig that a file holds.
type execFile struct {
	Command            string                           `json:"command"`
	Args               []string                         `json:"args"`
	Env                []clientcmdapi.ExecEnvVar        `json:"env"`
	APIVersion         string                           `json:"apiVersion"`
	InstallHint        string                           `json:"installHint"`
	ProvideClusterInfo bool                             `json:"provideClusterInfo"`
	InteractiveMode    clientcmdapi.ExecInteractiveMode `json:"interactiveMode"`
}

// ParseProviders reads the file of --clusterprofile-provider-file. Unknown and duplicate fields are errors, and so is a provider that would
// let profiles add arguments or variables to its command.
func ParseProviders(data []byte) (Providers, error) {
	if len(data) > maxProviderFile {
		return nil, fmt.Errorf("%d bytes are more than the %d that are read", len(data), maxProviderFile)
	}
	file := providerFile{}
	strict, err := kjson.UnmarshalStrict(data, &file)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	var out Providers
	seen := map[string]bool{}
	for i, p := range file.Providers {
		field := fmt.Sprintf("providers[%d]", i)
		switch {
		case p.Name == "":
			return nil, fmt.Errorf("%s.name is missing: give the name by which ClusterProfiles offer the provider", field)
		case p.Name == SecretProvider:
			return nil, fmt.Errorf("%s.name: %s is built in: give the provider another name", field, SecretProvider)
		case seen[p.Name]:
			return nil, fmt.Errorf("%s.name: %s is there twice: delete one", field, p.Name)
		case p.ProfileSourcedCLIArgs != "" && p.ProfileSourcedCLIArgs != policyIgnore:
			return nil, fmt.Errorf("%s.profileSourcedCLIArgsPolicy is %q: arguments of profiles are never added: delete it, or set Ignore",
				field, p.ProfileSourcedCLIArgs)
		case p.ProfileSourcedEnvVarPolicy != "" && p.ProfileSourcedEnvVarPolicy != policyIgnore:
			return nil, fmt.Errorf("%s.profileSourcedEnvVarsPolicy is %q: variables of profiles are never added: delete it, or set Ignore",
				field, p.ProfileSourcedEnvVarPolicy)
		}
		seen[p.Name] = true
		exec, err := p.ExecConfig.parse()
		if err != nil {
			return nil, fmt.Errorf("%s.execConfig%w", field, err)
		}
		out = append(out, Provider{Name: p.Name, Exec: exec})
	}
	return out, nil
}

// parse checks a command. The errors begin with the field below execConfig.
func (e *execFile) parse() (clientcmdapi.ExecConfig, error) {
	out := clientcmdapi.ExecConfig{}
	switch {
	case e == nil:
		return out, errors.New(" is missing: give the command that prints an ExecCredential")
	case strings.TrimSpace(e.Command) == "":
		return out, errors.New(".command is missing: give the program that prints an ExecCredential")
	case !execVersions[e.APIVersion]:
		return out, fmt.Errorf(".apiVersion is %q: set client.authentication.k8s.io/v1", e.APIVersion)
	case e.InteractiveMode != "" && e.InteractiveMode != clientcmdapi.NeverExecInteractiveMode:
		return out, fmt.Errorf(".interactiveMode is %q: the manager has no terminal: delete it, or set Never", e.InteractiveMode)
	}
	for i, v := range e.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00") {
			return out, fmt.Errorf(".env[%d] is no variable: it needs a name without =, and no NUL", i)
		}
	}
	return clientcmdapi.ExecConfig{
		Command: e.Command, Args: e.Args, Env: e.Env, APIVersion: e.APIVersion, InstallHint: e.InstallHint,
		// The cluster's configuration reaches the program with the rest of what is known of the cluster.
		ProvideClusterInfo: true, InteractiveMode: clientcmdapi.NeverExecInteractiveMode, StdinUnavailable: true,
	}, nil
}
