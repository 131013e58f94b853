//! `lint` on manifests in the form of the operators' examples. With `--root` no server is asked, so that the answer is the same
//! on every machine; one test asks the installed server.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const OK: i32 = 0;
const WARNING: i32 = 1;
const CRITICAL: i32 = 2;
const UNKNOWN: i32 = 3;
const USAGE: i32 = 64;

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests")
}

fn lint(directory: &Path, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/two-nodes");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hugepage-sidecar"));
    command.current_dir(directory).arg("--root").arg(root).arg("lint").args(arguments).output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// The rows, and the exit status.
fn rows(directory: &Path, files: &[&str]) -> (Vec<Value>, i32) {
    let output = lint(directory, &[&["--format", "json"], files].concat());
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (document["postgresql"].as_array().unwrap().clone(), status(&output))
}

fn rules(row: &Value) -> Vec<&str> {
    row["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// A pod with these arguments and resources.
fn pod(arguments: &str, resources: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\nspec:\n  containers:\n    - name: postgres\n      \
         image: postgres:15\n      args: [{arguments}]\n      resources: {resources}\n"
    )
}

fn judged(arguments: &str, resources: &str) -> (Value, i32) {
    let directory = written(&[("pod.yaml", &pod(arguments, resources))]);
    let (rows, status) = rows(directory.path(), &["pod.yaml"]);
    (rows[0].clone(), status)
}

#[test]
fn a_limit_as_large_as_shared_buffers_is_short() {
    let (rows, status) = rows(&manifests(), &["cnpg-short.yaml"]);
    let row = &rows[0];
    assert_eq!((rows.len(), status, row["verdict"].as_str()), (1, WARNING, Some("warning")));
    assert_eq!(
        (row["pages_limit"].as_u64(), row["outlook"].as_str(), row["form"].as_str()),
        (Some(512), Some("base"), Some("cloudnativepg"))
    );
    assert!(row["pages_needed_least"].as_u64().unwrap() > 512);
    assert!(row["source"].as_str().unwrap().starts_with("estimated"));
    let finding = &row["findings"][0];
    assert_eq!((finding["rule"].as_str(), finding["line"].as_u64()), (Some("too-few-pages"), Some(21)));
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains("CloudNativePG accepts it") && message.contains("says nothing"), "{message}");
}

#[test]
fn every_form_is_read() {
    let (of_pgo, status) = rows(&manifests(), &["pgo.yaml"]);
    let seen: Vec<_> = of_pgo.iter().map(|row| (row["huge_pages"].as_str().unwrap(), rules(row))).collect();
    assert_eq!(status, WARNING);
    assert_eq!(seen, [("try", vec!["too-few-pages"]), ("try", vec!["no-pages", "initdb"]), ("off", vec!["off"])]);

    // Spilo sizes itself by memory; what Kubernetes refuses is certain all the same.
    let (of_zalando, status) = rows(&manifests(), &["zalando.yaml"]);
    let row = &of_zalando[0];
    assert_eq!((status, row["shared_buffers"].as_u64(), row["outlook"].as_str()), (CRITICAL, None, Some("unknown")));
    assert_eq!(rules(row), ["refused", "unknown"]);

    let (of_pods, status) = rows(&manifests(), &["deployment.yaml"]);
    let verdicts: Vec<_> = of_pods.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    assert_eq!((status, verdicts), (CRITICAL, vec!["critical", "ok", "unknown"]));
    assert_eq!(of_pods[1]["name"], "StatefulSet db, container server");

    let (well, status) = rows(&manifests(), &["well.yaml"]);
    assert_eq!((status, well[0]["verdict"].as_str(), rules(&well[0])), (OK, Some("ok"), vec![]));
}

#[test]
fn resources_as_kubernetes_takes_them() {
    let buffers = "-c, shared_buffers=1GB";
    for (arguments, resources, rule, exit) in [
        (buffers, "{limits: {memory: 4Gi, hugepages-2Mi: 1200Mi}}", None, OK),
        (buffers, "{requests: {memory: 4Gi, hugepages-2Mi: 1200Mi}}", Some("refused"), CRITICAL),
        (buffers, "{limits: {hugepages-2Mi: 1200Mi}}", Some("refused"), CRITICAL),
        (buffers, "{limits: {memory: 4Gi, hugepages-2Mi: 1201Mi}}", Some("refused"), CRITICAL),
        (buffers, "{limits: {memory: 4Gi, hugepages-2Mi: lots}}", Some("refused"), CRITICAL),
        (buffers, "{limits: {memory: 4Gi, hugepages-2Mi: 3Gi}}", Some("waste"), WARNING),
        (buffers, "{limits: {memory: 4Gi, hugepages-2Mi: 1200Mi, hugepages-1Gi: 1Gi}}", Some("waste"), WARNING),
        (buffers, "{limits: {memory: 4Gi, hugepages-1Gi: 2Gi}}", Some("other-page-size"), WARNING),
        (buffers, "{limits: {memory: 4Gi}}", Some("no-pages"), WARNING),
        // Base pages count to the limit of memory, and huge pages may.
        (buffers, "{limits: {memory: 1Gi, hugepages-2Mi: 1Gi}}", Some("memory-limit"), CRITICAL),
        (buffers, "{limits: {memory: 1Gi, hugepages-2Mi: 1200Mi}}", Some("memory-limit"), OK),
        ("-c, shared_buffers=1GB, -c, huge_pages=off", "{limits: {memory: 512Mi}}", Some("memory-limit"), CRITICAL),
        ("-c, shared_buffers=1GB, -c, huge_pages=off", "{limits: {memory: 4Gi, hugepages-2Mi: 40Mi}}", Some("off"), OK),
        (
            "-c, shared_buffers=1GB, -c, huge_pages=off",
            "{limits: {memory: 4Gi, hugepages-2Mi: 1Gi}}",
            Some("waste"),
            WARNING,
        ),
        ("-c, shared_buffers=1GB, -c, huge_pages=off", "{limits: {memory: 4Gi}}", Some("off"), OK),
        ("-c, shared_buffers=1GB, -c, huge_pages=on", "{limits: {memory: 4Gi}}", Some("no-pages"), CRITICAL),
        ("-c, shared_buffers=1GB, -c, shared_memory_type=sysv", "{limits: {memory: 4Gi}}", Some("no-pages"), WARNING),
        // Under 1 GB base pages are a notice; what the manifest asks for in vain is not.
        ("-c, shared_buffers=128MB", "{limits: {memory: 1Gi}}", Some("no-pages"), OK),
        ("-c, shared_buffers=128MB", "{limits: {memory: 1Gi, hugepages-2Mi: 128Mi}}", Some("too-few-pages"), WARNING),
        (
            "-c, shared_buffers=16MB, -c, max_connections=20",
            "{limits: {memory: 1Gi, hugepages-2Mi: 38Mi}}",
            Some("initdb"),
            WARNING,
        ),
        (
            "-c, 'shared_preload_libraries=citus,pgaudit', -c, shared_buffers=1GB",
            "{limits: {memory: 4Gi, hugepages-2Mi: 1200Mi}}",
            Some("unknown"),
            UNKNOWN,
        ),
    ] {
        let (row, status) = judged(arguments, resources);
        let found = rules(&row);
        let expected = rule.is_none_or(|rule| found.contains(&rule)) && (rule.is_some() || found.is_empty());
        assert!(expected && status == exit, "{arguments} {resources}: {status} {row:#}");
    }
}

fn tool(program: &str, directory: &Path, arguments: &[&str], patch: &[u8]) {
    let mut command = Command::new(program);
    command.current_dir(directory).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    child.stdin.take().unwrap().write_all(patch).unwrap();
    assert!(child.wait().unwrap().success(), "{program}: {}", String::from_utf8_lossy(patch));
}

/// Where git or patch is installed; the change itself is checked by the finding that it ends.
#[test]
fn the_patch_applies_and_cures() {
    let short_pod = pod("-c, shared_buffers=2GB", "{limits: {memory: 6Gi, hugepages-2Mi: '2Gi'}}");
    let windows =
        short_pod.replace("resources: {limits: {memory: 6Gi, hugepages-2Mi: '2Gi'}}", "env: []").replace('\n', "\r\n");
    let alias = "apiVersion: v1\nkind: Pod\nmetadata: {name: ü}\nspec:\n  containers:\n  - name: postgres\n    image: postgres:15\n    \
                 args: [-c, shared_buffers=2GB]\n    resources:\n      limits: &same {memory: 6Gi, hugepages-2Mi: 2Gi}\n      requests: *same";
    let text = |name: &str| fs::read_to_string(manifests().join(name)).unwrap();
    for (name, text) in [
        ("cnpg-short.yaml", text("cnpg-short.yaml")),
        ("pgo.yaml", text("pgo.yaml")),
        ("deployment.yaml", text("deployment.yaml")),
        ("pod.yaml", short_pod),
        ("windows.yaml", windows),
        ("alias.yaml", alias.to_owned()),
    ] {
        for (program, arguments) in
            [("git", ["apply", "--whitespace=nowarn", "-"]), ("patch", ["-p1", "--binary", "-s"])]
        {
            let directory = written(&[(name, &text)]);
            let patch = lint(directory.path(), &["--format", "patch", name]).stdout;
            assert!(!patch.is_empty(), "{name}");
            tool(program, directory.path(), &arguments, &patch);
            if fs::read_to_string(directory.path().join(name)).unwrap() == text {
                continue;
            }
            let (after, _) = rows(directory.path(), &[name]);
            for row in after {
                let cured = ["too-few-pages", "no-pages", "refused", "initdb"];
                assert!(rules(&row).iter().all(|rule| !cured.contains(rule)), "{name}: {row:#}");
            }
            assert!(lint(directory.path(), &["--format", "patch", name]).stdout.is_empty(), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_read_says_where() {
    let long = "# \n".repeat(3 << 20);
    let directory =
        written(&[("bad.yaml", "a: 1\nb: [1\nc: 2\n"), ("long.yaml", &long), ("other.yaml", "kind: Service\n")]);
    fs::write(directory.path().join("latin.yaml"), b"a: \xe4\n").unwrap();
    for (arguments, message) in [
        (&["bad.yaml"][..], "bad.yaml: line 3"),
        (&["long.yaml"], "longer than 8 MB"),
        (&["latin.yaml"], "not UTF-8"),
        (&["none.yaml"], "could not read none.yaml"),
        (&["other.yaml"], "no PostgreSQL"),
    ] {
        let output = lint(directory.path(), arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(status(&output) == UNKNOWN && stderr.contains(message), "{stderr}");
    }
    assert_eq!(status(&lint(directory.path(), &[])), USAGE);
}

#[test]
fn names_of_others_are_escaped() {
    let text = pod("-c, shared_buffers=1GB", "{}").replace("name: one", "name: \"a\\e[31m\"");
    let directory = written(&[("pod.yaml", &text)]);
    let output = lint(directory.path(), &["pod.yaml"]);
    assert!(
        !output.stdout.contains(&0x1b) && status(&output) == WARNING,
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Where PostgreSQL is installed: exact to the page, and what the server refuses.
#[test]
fn an_installed_server_is_asked() {
    let Some(major) = (15..30).find(|major| Path::new(&format!("/usr/lib/postgresql/{major}/bin/postgres")).is_file())
    else {
        return;
    };
    let text = pod("-c, shared_buffers=1GB, -c, temp_file_limit=-1", "{limits: {memory: 4Gi, hugepages-2Mi: 1Gi}}");
    let text = text.replace("postgres:15", &format!("postgres:{major}"));
    let refused = text.replace("temp_file_limit=-1", "superuser_reserved_connections=200");
    // A server that loaded it would not answer.
    let library = text.replace("temp_file_limit=-1", "'shared_preload_libraries=/none/evil', --hba-file=/none");
    let directory = written(&[("pod.yaml", &text), ("refused.yaml", &refused), ("library.yaml", &library)]);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hugepage-sidecar"));
        command.current_dir(directory.path()).args(["lint", "--format", "json"]).args(arguments);
        let output = command.output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        document["postgresql"][0].clone()
    };
    let row = run(&["pod.yaml"]);
    assert_eq!(row["source"], format!("postgres -C of version {major}"));
    assert_eq!(row["shared_memory_least"], row["shared_memory_most"]);
    assert!(row["pages_needed_least"].as_u64().unwrap() > 512 && rules(&row) == ["too-few-pages"], "{row:#}");
    let named = run(&["--postgres", &format!("/usr/lib/postgresql/{major}/bin"), "pod.yaml"]);
    assert_eq!(named["shared_memory_least"], row["shared_memory_least"]);
    // The estimate holds it.
    let estimated = rows(directory.path(), &["pod.yaml"]).0[0].clone();
    let of = |row: &Value, bound: &str| row[format!("shared_memory_{bound}")].as_u64().unwrap();
    let exact = of(&row, "least");
    assert!(of(&estimated, "least") <= exact && exact <= of(&estimated, "most"), "{estimated:#}");
    let with_library = run(&["library.yaml"]);
    assert_eq!((&with_library["source"], of(&with_library, "least")), (&row["source"], exact));
    assert!(with_library["shared_memory_most"].is_null(), "{with_library:#}");
    let row = run(&["refused.yaml"]);
    assert!(rules(&row).contains(&"settings"), "{row:#}");
    assert!(row["findings"][0]["message"].as_str().unwrap().contains("superuser_reserved_connections"), "{row:#}");
}
