package packages

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestPostgresRefuses: values by which whoever may set parameters of package postgres would get more than the database of its Instance, and
// combinations that cannot work, are refused before an object is made.
func TestPostgresRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ plan, value, want string }{
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
		"StrictAlone":       {"deploy", "REPLICAS=1,DURABILITY=strict", "DURABILITY strict needs a second member"},
		"NoSecret":          {"deploy", "TLS=secret", "parameter TLS_SECRET is empty"},
		"NoStore":           {"backup", "BACKUP_STORE=none", "there are no backups: BACKUP_STORE is none"},
	} {
		args := []string{"package", "render", "../../../operators/catalog/postgres/operator", "--plan", tc.plan,
			"-p", "PASSWORD=x", "-p", "BACKUP_KEY=y", "-p", "IMAGE_REGISTRY=registry.example.com"}
		for _, value := range strings.Split(tc.value, ",") {
			args = append(args, "-p", value)
		}
		if _, errs := commandtest.Expect(t, New, command.ExitError, "", args...); !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s", name, errs)
		}
	}
}

// TestPostgresScripts shows K3: shellcheck finds nothing in the scripts of package postgres, and none has more than 150 lines.
func TestPostgresScripts(t *testing.T) {
	switch _, err := exec.LookPath("shellcheck"); {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal("continuous integration installs shellcheck: ", err)
	case err != nil:
		t.Skip("needs shellcheck: ", err)
	}
	out, _ := commandtest.Expect(t, New, 0, "", "package", "render", "../../../operators/catalog/postgres/operator", "--plan", "deploy",
		"-p", "PASSWORD=x", "-p", "BACKUP_KEY=y", "-p", "IMAGE_REGISTRY=registry.example.com")
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
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "/scripts/", dir+"/")), 0o600); err != nil {
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
