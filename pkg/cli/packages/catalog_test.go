package packages

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// production are the packages of the catalog for production, with values of the parameters that have no default. They store no backups, or need no
// shared store for it.
var production = map[string][]string{
	"etcd":     {"PASSWORD=x", "IMAGE_REGISTRY=registry.example.com", "BACKUP_STORE=none"},
	"mariadb":  {"PASSWORD=x", "IMAGE_REGISTRY=registry.example.com", "BACKUP_STORE=none"},
	"postgres": {"PASSWORD=x", "IMAGE_REGISTRY=registry.example.com", "BACKUP_KEY=y"},
	"rabbitmq": {"PASSWORD=x", "IMAGE_REGISTRY=registry.example.com", "BACKUP_STORE=none"},
	"redis":    {"PASSWORD=x", "IMAGE_REGISTRY=registry.example.com", "BACKUP_STORE=none"},
}

// ofCatalog are the arguments that run a command of package for a package of the catalog.
func ofCatalog(command, name string, values ...string) []string {
	args := []string{"package", command, "../../../operators/catalog/" + name + "/operator"}
	for _, value := range append(slices.Clone(production[name]), values...) {
		args = append(args, "-p", value)
	}
	return args
}

// TestCatalogRefuses: values by which whoever may set parameters of a package would get more than the data of its Instance, and combinations that
// cannot work, are refused before an object is made.
func TestCatalogRefuses(t *testing.T) {
	for name, cases := range map[string]map[string]struct{ plan, value, want string }{
		"etcd": {
			"ConfigFile":  {"configure", "SETTINGS={config-file: /data/x}", "SETTINGS: config-file cannot be set"},
			"NewCluster":  {"configure", "SETTINGS={force-new-cluster: true}", "SETTINGS: force-new-cluster cannot be set"},
			"Folder":      {"configure", "SETTINGS={data-dir: /tmp}", "SETTINGS: data-dir cannot be set"},
			"NoSync":      {"configure", "SETTINGS={unsafe-no-fsync: true}", "SETTINGS: unsafe-no-fsync cannot be set"},
			"Listen":      {"configure", "SETTINGS={listen-client-urls: 'http://0.0.0.0:1'}", "SETTINGS: listen-client-urls cannot be set"},
			"Profiles":    {"configure", "SETTINGS={enable-pprof: true}", "SETTINGS: enable-pprof cannot be set"},
			"Variable":    {"configure", "SETTINGS={LD_PRELOAD: /data/x}", "SETTINGS: LD_PRELOAD cannot be set"},
			"Capitals":    {"configure", "SETTINGS={Config-File: /data/x}", "SETTINGS: Config-File cannot be set"},
			"Quota":       {"configure", "QUOTA=1;id", "QUOTA"},
			"BackupName":  {"backup", "BACKUP_NAME=$(id)", "BACKUP_NAME"},
			"RestoreName": {"restore", "RESTORE_NAME=a,b", "RESTORE_NAME"},
			"OtherTeam":   {"restore", "RESTORE_FROM=../other/x", "RESTORE_FROM"},
			"User":        {"backup", "BACKUP_USER=other/team", "BACKUP_USER"},
			"NoSecret":    {"deploy", "TLS=secret", "parameter TLS_SECRET is empty"},
			"TwoMembers":  {"scale", "REPLICAS=2", "REPLICAS"},
		},
		"mariadb": {
			"Root":        {"deploy", "USER=root", "USER: root is a user of the server itself"},
			"UserCommand": {"deploy", "USER=a`; id", "USER"},
			"OwnDatabase": {"deploy", "DATABASE=mysql", "DATABASE: mysql is a database of the server itself"},
			"Plugin":      {"configure", "SETTINGS={plugin_load_add: /tmp/a.so}", "SETTINGS: plugin_load_add cannot be set"},
			"Command":     {"configure", "SETTINGS={wsrep_notify_cmd: id}", "SETTINGS: wsrep_notify_cmd cannot be set"},
			"Statements":  {"configure", "SETTINGS={init_connect: id}", "SETTINGS: init_connect cannot be set"},
			"Prefix":      {"configure", "SETTINGS={loose_plugin_load: a}", "SETTINGS: loose_plugin_load cannot be set"},
			"Dashes":      {"configure", "SETTINGS={plugin-load: a}", `SETTINGS: "plugin-load" is no name of a setting`},
			"Capitals":    {"configure", "SETTINGS={PLUGIN_LOAD: a}", `SETTINGS: "PLUGIN_LOAD" is no name of a setting`},
			"Include":     {"configure", `SETTINGS={"!include /tmp/a": a}`, "is no name of a setting"},
			"Section":     {"configure", `SETTINGS={"[mysqld_safe]": a}`, "is no name of a setting"},
			"Line":        {"configure", `SETTINGS={sql_mode: "a\nplugin_load=a"}`, "SETTINGS: the value of sql_mode has a quote, a backslash or a line break"},
			"Quote":       {"configure", `SETTINGS={sql_mode: 'a" b'}`, "SETTINGS: the value of sql_mode has a quote, a backslash or a line break"},
			"BackupName":  {"backup", "BACKUP_NAME=$(id)", "BACKUP_NAME"},
			"OtherUser":   {"deploy", "BACKUP_STORE=shared\nBACKUP_USER=../team-b", "BACKUP_USER"},
			"OtherPlace":  {"restore", "RESTORE_FROM=../../team-b/x.y", "RESTORE_FROM"},
			"NoSecret":    {"deploy", "TLS=secret", "parameter TLS_SECRET is empty"},
			"NoKey":       {"deploy", "BACKUP_STORE=shared", "parameter BACKUP_KEY is empty"},
		},
		"postgres": {
			"Superuser":         {"deploy", "USER=postgres", "USER: postgres is a user of the server itself"},
			"Replication":       {"deploy", "USER=replication", "USER: replication is a user of the server itself"},
			"Rewind":            {"deploy", "USER=rewind", "USER: rewind is a user of the server itself"},
			"System":            {"deploy", "USER=pg_write_server_files", "USER: pg_write_server_files is a user of the server itself"},
			"UserCommand":       {"deploy", "USER=a; id", "USER"},
			"OwnDatabase":       {"deploy", "DATABASE=template1", "DATABASE: template1 is a database of the server itself"},
			"Command":           {"configure", "SETTINGS={archive_cleanup_command: id}", "SETTINGS: archive_cleanup_command would run a command"},
			"CommandInCapitals": {"configure", "SETTINGS={SSL_passphrase_COMMAND: id}", "SETTINGS: SSL_passphrase_COMMAND would run a command"},
			"BackupName":        {"backup", "BACKUP_NAME=$(id)", "BACKUP_NAME"},
			"Target":            {"restore", "RESTORE_TARGET=2026-01-01'; id", "RESTORE_TARGET"},
			"StrictAlone":       {"deploy", "REPLICAS=1\nDURABILITY=strict", "DURABILITY strict needs a second member"},
			"NoSecret":          {"deploy", "TLS=secret", "parameter TLS_SECRET is empty"},
		},
		"rabbitmq": {
			"Definitions": {"configure", "SETTINGS={load_definitions: /data/x}", "SETTINGS: load_definitions cannot be set"},
			"Listen":      {"configure", "SETTINGS={listeners.tcp.default: 5672}", "SETTINGS: listeners.tcp.default cannot be set"},
			"Login":       {"configure", "SETTINGS={default_user: guest}", "SETTINGS: default_user cannot be set"},
			"Backend":     {"configure", "SETTINGS={auth_backends.1: http}", "SETTINGS: auth_backends.1 cannot be set"},
			"Certificate": {"configure", "SETTINGS={ssl_options.certfile: /data/x}", "SETTINGS: ssl_options.certfile cannot be set"},
			"Partition":   {"configure", "SETTINGS={cluster_partition_handling: ignore}", "SETTINGS: cluster_partition_handling cannot be set"},
			"Capitals":    {"configure", "SETTINGS={Heartbeat: 1}", "SETTINGS: Heartbeat cannot be set"},
			"Line":        {"configure", `SETTINGS={heartbeat: "1\nload_definitions = /data/x"}`, "SETTINGS: the value of heartbeat may have"},
			"Comment":     {"configure", `SETTINGS={heartbeat: "1 # x"}`, "SETTINGS: the value of heartbeat may have"},
			"BackupName":  {"backup", "BACKUP_NAME=$(id)", "BACKUP_NAME"},
			"RestoreName": {"restore", "RESTORE_NAME=a,b", "RESTORE_NAME"},
			"OtherTeam":   {"restore", "RESTORE_FROM=../other/x", "RESTORE_FROM"},
			"User":        {"backup", "BACKUP_USER=other/team", "BACKUP_USER"},
			"NoSecret":    {"deploy", "TLS=secret", "parameter TLS_SECRET is empty"},
			"TwoMembers":  {"scale", "REPLICAS=2", "REPLICAS"},
		},
		"redis": {
			"Folder":      {"configure", "SETTINGS={dir: /tmp}", "SETTINGS: dir is the package's own"},
			"Module":      {"configure", "SETTINGS={loadmodule: /tmp/a.so}", "SETTINGS: loadmodule is the package's own"},
			"Include":     {"configure", "SETTINGS={include: /secrets/ADMIN}", "SETTINGS: include is the package's own"},
			"Capitals":    {"configure", "SETTINGS={DIR: /tmp}", "SETTINGS: DIR is the package's own"},
			"Line":        {"configure", `SETTINGS={maxmemory: "1mb\ndir /tmp"}`, "SETTINGS: the value of maxmemory may have"},
			"Quote":       {"configure", `SETTINGS={save: '" dir "'}`, "SETTINGS: the value of save may have"},
			"Name":        {"configure", `SETTINGS={"maxmemory 1mb": a}`, "SETTINGS: maxmemory 1mb is the package's own"},
			"BackupName":  {"backup", "BACKUP_NAME=$(id)", "BACKUP_NAME"},
			"Switchover":  {"switchover", "SWITCHOVER_TO=$(id)", "SWITCHOVER_TO"},
			"RestoreFrom": {"restore", "RESTORE_FROM=../../other", "RESTORE_FROM"},
			"StrictAlone": {"deploy", "REPLICAS=1\nDURABILITY=strict", "DURABILITY strict needs a second member"},
			"NoKey":       {"deploy", "BACKUP_STORE=shared", "is empty"},
		},
	} {
		for reason, tc := range cases {
			args := append(ofCatalog("render", name, strings.Split(tc.value, "\n")...), "--plan", tc.plan)
			if _, errs := commandtest.Expect(t, New, command.ExitError, "", args...); !strings.Contains(errs, tc.want) {
				t.Errorf("%s, %s: %s", name, reason, errs)
			}
		}
	}
}

// TestCatalogWithoutStore: packages can be installed without backups, although an installation renders the plans that need them.
func TestCatalogWithoutStore(t *testing.T) {
	for name := range production {
		commandtest.Expect(t, New, 0, "", ofCatalog("rights", name, "BACKUP_STORE=none")...)
	}
}

// TestCatalogQuotes: the name of a Secret, a class or a priority stays one value in each package, whatever it has.
func TestCatalogQuotes(t *testing.T) {
	const hostile = "a\"]\n- name: LD_PRELOAD\n  value: $(id)"
	for name := range production {
		for _, plan := range []string{"deploy", "certificates"} {
			args := ofCatalog("render", name, "TLS=secret", "TLS_SECRET="+hostile, "STORAGE_CLASS="+hostile, "PRIORITY_CLASS="+hostile)
			out, _ := commandtest.Expect(t, New, 0, "", append(args, "--plan", plan)...)
			whole := 0
			for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out), 4096); ; {
				var object map[string]any
				if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s, plan %s: %v", name, plan, err)
				}
				whole += countText(object, hostile)
				if countText(object, "LD_PRELOAD") > 0 {
					t.Errorf("%s, plan %s: a value has become a variable", name, plan)
				}
			}
			if whole == 0 {
				t.Errorf("%s, plan %s: no object has the value as it was given", name, plan)
			}
		}
	}
}

// countText counts the texts in a JSON value that equal a text.
func countText(value any, text string) (found int) {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range v {
			found += countText(field, text)
		}
	case []any:
		for _, entry := range v {
			found += countText(entry, text)
		}
	case string:
		if v == text {
			found = 1
		}
	}
	return found
}

// TestCatalogScripts shows K3: shellcheck finds nothing in the scripts of packages, and none has more than 150 lines.
func TestCatalogScripts(t *testing.T) {
	switch _, err := exec.LookPath("shellcheck"); {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal("continuous integration installs shellcheck: ", err)
	case err != nil:
		t.Skip("needs shellcheck: ", err)
	}
	for name := range production {
		t.Run(name, func(t *testing.T) { checkScripts(t, name) })
	}
}

// checkScripts checks the scripts of the ConfigMaps of a package.
func checkScripts(t *testing.T, name string) {
	t.Helper()
	out, _ := commandtest.Expect(t, New, 0, "", append(ofCatalog("render", name), "--plan", "deploy")...)
	dir, files := t.TempDir(), []string{"--shell=bash", "--external-sources"}
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out), 4096); ; {
		object := &corev1.ConfigMap{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			continue // it is an object of another kind
		}
		for name, text := range object.Data {
			if filepath.Ext(name) != ".sh" {
				continue
			}
			if n := strings.Count(text, "\n"); n > 150 {
				t.Errorf("%s has %d lines", name, n)
			}
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(strings.NewReplacer("/scripts/", dir+"/", ". /server/", ". "+dir+"/").Replace(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	if len(files) < 10 {
		t.Fatalf("the scripts are %v", files)
	}
	if out, err := exec.Command("shellcheck", files...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, bytes.ReplaceAll(out, []byte(dir), nil))
	}
}
