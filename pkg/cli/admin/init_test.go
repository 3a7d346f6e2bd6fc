package admin

import (
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/kudoinit"
)

// TestInitUsage checks that init refuses flags that contradict each other, before it connects to a cluster.
func TestInitUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Output":       {"formats exist", []string{"--dry-run", "-o", "table"}, "invalid output format \"table\""},
		"OutputAlone":  {"only a dry run and a check print objects", []string{"-o", "yaml"}, "--output requires --dry-run or --verify"},
		"WaitDry":      {"a dry run has nothing to wait for", []string{"--wait", "--dry-run"}, "--wait cannot be used with --dry-run and --diff"},
		"Tag":          {"a command knows one image", []string{"--version", "0.1.0"}, "this is kubectl kudo dev, and it knows the manager of dev only: use kubectl kudo 0.1.0, or give --kudo-image"},
		"Registry":     {"a development build has no image", []string{"--image-registry", "example.org"}, "--image-registry: this build of kubectl kudo knows no image of the manager"},
		"RegistryTwo":  {"an image has one place", []string{"--image-registry", "example.org", "--kudo-image", "x"}, "--kudo-image and --image-registry exclude each other"},
		"RegistryOut":  {"what runs elsewhere is pulled elsewhere", []string{"--image-registry", "example.org", "--external-manager"}, "--image-registry cannot be used with --external-manager"},
		"PullPolicy":   {"policies exist", []string{"--kudo-image-pull-policy", "Sometimes"}, "must be Always, Never or IfNotPresent"},
		"Modes":        {"one thing at a time", []string{"--upgrade", "--remove"}, "exclude each other"},
		"RemoveFlags":  {"a removal takes no image", []string{"--remove", "--kudo-image", "example.com/kudo:1"}, "take no flags of an installation"},
		"VerifyFlags":  {"nor does a check", []string{"--verify", "--manager-replicas", "2"}, "take no flags of an installation"},
		"CRDs":         {"CRDs are removed with kudo only", []string{"--remove-crds"}, "--remove-crds and --instances require --remove"},
		"Instances":    {"choices exist", []string{"--remove", "--instances", "drop"}, "must be uninstall or keep"},
		"DropOld":      {"keys are dropped by a rotation only", []string{"--drop-old"}, "--drop-old requires --rotate-history-key"},
		"SettingModes": {"a cluster has one mode", []string{"--strict", "--privileged"}, "--strict and --privileged exclude each other"},
		"Replicas":     {"a manager runs somewhere", []string{"--manager-replicas", "-1"}, "--manager-replicas -1: name 1 or more"},
		"ReplicasOut":  {"what runs elsewhere is started elsewhere", []string{"--manager-replicas", "2", "--external-manager", "--webhook-url", "https://localhost:1"}, "--manager-replicas cannot be used with --external-manager"},
		"Arguments":    {"arguments are kept or dropped", []string{"--keep-args", "--drop-args"}, "--keep-args and --drop-args exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := commandtest.Expect(t, NewInit, command.ExitUsage, "", append([]string{"init"}, tc.args...)...)
			if !strings.Contains(errs, tc.want) {
				t.Errorf("%s: %q is not in\n%s", tc.reason, tc.want, errs)
			}
		})
	}
}

// TestInitDryRun checks that a dry run without a cluster prints the objects of kudo.
func TestInitDryRun(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("HOME", t.TempDir())
	out, _ := commandtest.Expect(t, NewInit, 0, "", "init", "--dry-run", "-o", "yaml", "--crd-only")
	for _, want := range []string{"operators.kudo.dev", "operatorversions.kudo.dev", "instances.kudo.dev"} {
		if !strings.Contains(out, "name: "+want) {
			t.Errorf("%s is not among the objects", want)
		}
	}
}

// TestReleasedImage checks R6 and R7: a released command installs its own image by the digest, wherever a copy of it is, and no output
// names the image of another project.
func TestReleasedImage(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("HOME", t.TempDir())
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, tc := range []struct {
		reason, own string
		args        []string
		image, errs string
	}{
		{"a development build", "", nil, "kudo-manager:dev", "which no registry has: this build of kubectl kudo knows no image of the manager: give --kudo-image, or use a released one"},
		{"a release", "example.org/kudo/manager" + digest, nil, "example.org/kudo/manager" + digest, ""},
		{"the version of the release", "example.org/kudo/manager" + digest, []string{"--version", "v" + command.Version}, "example.org/kudo/manager" + digest, ""},
		{"a copy", "example.org/kudo/manager" + digest, []string{"--image-registry", "mirror.example.com/a"}, "mirror.example.com/a/kudo/manager" + digest, ""},
		{"a tag", "example.org/kudo/manager" + digest, []string{"--kudo-image", "example.com/kudo:1"}, "example.com/kudo:1", "Warning: image example.com/kudo:1 has no digest"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			defer func(image string) { kudoinit.Image = image }(kudoinit.Image)
			kudoinit.Image = tc.own
			out, errs := commandtest.Expect(t, NewInit, 0, "", append([]string{"init", "--dry-run", "-o", "yaml"}, tc.args...)...)
			if !strings.Contains(out, "image: "+tc.image+"\n") || !strings.Contains(errs, tc.errs) {
				t.Errorf("the image is not %s, or %q is not in the messages:\n%s", tc.image, tc.errs, errs)
			}
			for _, name := range []string{"kudobuilder", "ghcr.io", "docker.io", "gcr.io", "quay.io"} {
				if strings.Contains(out+errs, name) {
					t.Errorf("%s is named", name)
				}
			}
		})
	}
}

// TestVersionKey checks R13: a released command prints the key that its release is verified with, and another build says that it has none.
func TestVersionKey(t *testing.T) {
	noCluster(t)
	if _, errs := commandtest.Expect(t, NewVersion, 1, "", "version", "--key"); !strings.Contains(errs, "this build of kubectl kudo has no public key: use a signed release") {
		t.Errorf("a development build says %q", errs)
	}
	defer func(key string) { signingKey = key }(signingKey)
	signingKey = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
	want := "-----BEGIN PUBLIC KEY-----\n" + signingKey + "\n-----END PUBLIC KEY-----\n"
	if out, _ := commandtest.Expect(t, NewVersion, 0, "", "version", "--key"); out != want {
		t.Errorf("the key is printed as\n%s, want\n%s", out, want)
	}
	signingKey = "?"
	if _, errs := commandtest.Expect(t, NewVersion, 1, "", "version", "--key"); !strings.Contains(errs, "build it by make release") {
		t.Errorf("a key that is none: %q", errs)
	}
	if _, errs := commandtest.Expect(t, NewVersion, 2, "", "version", "--key", "-o", "json"); !strings.Contains(errs, "[key output]") {
		t.Errorf("the key as JSON: %q", errs)
	}
}

// TestVersion checks that the version is printed without a cluster.
func TestVersion(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("HOME", t.TempDir())
	if out, _ := commandtest.Expect(t, NewVersion, 0, "", "version"); !strings.HasPrefix(out, "kudo "+command.Version+" (go") || strings.Contains(out, "mode:") {
		t.Errorf("version and platform only:\n%s", out)
	}
	if out, _ := commandtest.Expect(t, NewVersion, 0, "", "version", "-o", "yaml"); !strings.Contains(out, "gitVersion: "+command.Version) {
		t.Errorf("the version as YAML:\n%s", out)
	}
}
