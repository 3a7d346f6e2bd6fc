// Package settings holds what an administrator decides about kudo on a cluster: the keys of one ConfigMap in kudo's
// namespace, which `kubectl kudo init` writes and the manager reads.
package settings

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ConfigMap is the name of the ConfigMap, in kudo's namespace.
const ConfigMap = "kudo-config"

// Mode says with whose rights the plans of Instances run that name no ServiceAccount.
type Mode string

const (
	// Strict runs them as the default account of their namespace, and as kudo's own account only where the Namespace is
	// labeled so.
	Strict Mode = "strict"
	// Privileged runs them as kudo's own account, as KUDO did: whoever may create Instances is an administrator.
	Privileged Mode = "privileged"
)

// DefaultAccount is the ServiceAccount of Instances that name none, unless the administrator names another one.
const DefaultAccount = "kudo"

// InstallerAccount is the ServiceAccount, in kudo's namespace, with whose rights install plans and CRD tarballs write.
const InstallerAccount = "kudo-installer"

// Keys of the ConfigMap. A key that is missing is the strict choice.
const (
	ModeKey            = "mode"
	DefaultAccountKey  = "default-account"
	RunAsEverywhereKey = "run-as-everywhere"
	AllowedHostsKey    = "crd-allowed-hosts"
	DefaultCRDURLKey   = "default-crd-url-template"
	TokenRealmsKey     = "oci-token-realms"
	// PackagePolicyKey is the one key whose strict choice is not that of a missing one: a new cluster has no policies.
	PackagePolicyKey = "package-policy"
)

// Settings are the values of the keys.
type Settings struct {
	Mode           Mode
	DefaultAccount string
	// RunAsEverywhere lets the manager act as ServiceAccounts of all namespaces, also of those that do not let it in.
	RunAsEverywhere bool
	// AllowedHosts are hosts that CRD tarballs may come from; none for those that OperatorVersions name.
	AllowedHosts []string
	// DefaultCRDURL is a template of the URL of the CRD tarball of versions that name none; empty for none.
	DefaultCRDURL string
	// TokenRealms are hosts, besides a registry's own, that credentials of registries may be sent to.
	TokenRealms []string
	// RequirePackagePolicy refuses packages that no PackagePolicy is for.
	RequirePackagePolicy bool
}

// requiredPolicy is the value of PackagePolicyKey.
const requiredPolicy = "required"

// Default returns the settings of an installation whose administrator has decided nothing.
func Default() Settings { return Settings{Mode: Strict, DefaultAccount: DefaultAccount} }

// Strictest returns the settings of an installation of which they are not known.
func Strictest() Settings {
	s := Default()
	s.RequirePackagePolicy = true
	return s
}

// Parse reads the data of the ConfigMap. Along with an error, which names the key and the remedy, come settings in which
// each wrong value is the strict choice.
func Parse(data map[string]string) (Settings, error) {
	s, wrong := Default(), []string(nil)
	switch mode := Mode(data[ModeKey]); mode {
	case Strict, Privileged:
		s.Mode = mode
	case "":
	default:
		wrong = append(wrong, fmt.Sprintf("%s is %q: it must be %s or %s", ModeKey, mode, Strict, Privileged))
	}
	if name := data[DefaultAccountKey]; name != "" {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			wrong = append(wrong, fmt.Sprintf("%s is %q, which is no name of a ServiceAccount: %s", DefaultAccountKey, name, problems[0]))
		} else {
			s.DefaultAccount = name
		}
	}
	if text := data[RunAsEverywhereKey]; text != "" {
		everywhere, err := strconv.ParseBool(text)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s is %q: it must be true or false", RunAsEverywhereKey, text))
		}
		s.RunAsEverywhere = everywhere
	}
	s.AllowedHosts, s.TokenRealms = list(data[AllowedHostsKey]), list(data[TokenRealmsKey])
	wrong = append(wrong, checkHosts(AllowedHostsKey, s.AllowedHosts)...)
	wrong = append(wrong, checkHosts(TokenRealmsKey, s.TokenRealms)...)
	if url := data[DefaultCRDURLKey]; url == "" || strings.HasPrefix(url, "https://") {
		s.DefaultCRDURL = url
	} else {
		wrong = append(wrong, fmt.Sprintf("%s is %q: it must begin with https://, since what http transfers can be changed on the way, and no "+
			"digest is known", DefaultCRDURLKey, url))
	}
	if text := data[PackagePolicyKey]; text != "" {
		s.RequirePackagePolicy = true
		if text != requiredPolicy {
			wrong = append(wrong, fmt.Sprintf("%s is %q: it must be %s, or be left out", PackagePolicyKey, text, requiredPolicy))
		}
	}
	known := []string{ModeKey, DefaultAccountKey, RunAsEverywhereKey, AllowedHostsKey, DefaultCRDURLKey, TokenRealmsKey,
		PackagePolicyKey}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !slices.Contains(known, key) {
			wrong = append(wrong, fmt.Sprintf("%s is no setting: there are %s", key, strings.Join(known, ", ")))
		}
	}
	if wrong != nil {
		return s, fmt.Errorf("ConfigMap %s: %s", ConfigMap, strings.Join(wrong, "; "))
	}
	return s, nil
}

// hostname matches what a URL has for a host, IP addresses of version 4 included.
var hostname = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`)

// checkHosts returns what is wrong with the entries of a list of hosts. A wrong entry stays in the list, where it allows no host: an
// empty list would allow more.
func checkHosts(key string, entries []string) []string {
	var wrong []string
	for _, entry := range entries {
		if !isHost(entry) {
			wrong = append(wrong, fmt.Sprintf("%s has %q, which names no host: write example.org, example.org:8443 or *.example.org, "+
				"without a scheme and a path", key, entry))
		}
	}
	return wrong
}

// isHost reports whether an entry is a host or an IP address, both with or without a port, or stands for the hosts below one.
func isHost(entry string) bool {
	if below, ok := strings.CutPrefix(entry, "*."); ok {
		return hostname.MatchString(below)
	}
	if host, port, err := net.SplitHostPort(entry); err == nil {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return false
		}
		entry = host
	}
	return hostname.MatchString(entry) || net.ParseIP(entry) != nil
}

// list splits a list whose entries commas or blanks separate.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Data is the data of the ConfigMap for the settings. What was not decided has no key.
func (s Settings) Data() map[string]string {
	out := map[string]string{ModeKey: string(s.Mode), DefaultAccountKey: s.DefaultAccount,
		RunAsEverywhereKey: strconv.FormatBool(s.RunAsEverywhere)}
	for key, text := range map[string]string{
		AllowedHostsKey: strings.Join(s.AllowedHosts, ","), DefaultCRDURLKey: s.DefaultCRDURL, TokenRealmsKey: strings.Join(s.TokenRealms, ","),
	} {
		if text != "" {
			out[key] = text
		}
	}
	if s.RequirePackagePolicy {
		out[PackagePolicyKey] = requiredPolicy
	}
	return out
}
