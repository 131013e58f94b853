//! Manifests that hide what a server asks for. What was not understood is unknown, with the reason and without a patch; none of
//! these may be `ok`.

use std::collections::BTreeMap;

use hugepage_kernel::Bytes;
use hugepage_lint::{AskServer, PostgresRow, SourceFile, lint};
use hugepage_start::StartAnswer;

/// No server is installed.
struct NoServer;

impl AskServer for NoServer {
    fn ask(
        &mut self,
        _major: Option<u32>,
        _wal_segment_mb: Option<u32>,
        _settings: &BTreeMap<&str, &str>,
    ) -> Result<(u32, StartAnswer<Bytes>), String> {
        Err("none is installed".to_owned())
    }
}

/// The rows and the patch.
fn judged(text: &str) -> (Vec<PostgresRow>, String) {
    let lint = lint(vec![SourceFile { name: "a.yaml".into(), text: text.to_owned() }], &mut NoServer)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    (lint.rows(), lint.patch())
}

fn messages(row: &PostgresRow) -> String {
    row.findings.iter().map(|finding| format!("{}\n", finding.message)).collect()
}

const ARGS: &str = "args: [-c, shared_buffers=1GB, -c, huge_pages=on]";
const ENOUGH: &str = "resources: {limits: {memory: 4Gi, hugepages-2Mi: 1200Mi}}";

/// A pod with a server that has its pages, and these lines in the container and in the pod, and these documents beside it.
fn pod(container: &[&str], pod: &[&str], beside: &str) -> String {
    let mut text = "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec:\n".to_owned();
    pod.iter().for_each(|line| text += &format!("  {line}\n"));
    text += "  containers:\n  - name: db\n";
    let has = |key: &str| container.iter().any(|line| line.starts_with(key));
    for (key, line) in [("image:", "image: postgres:17"), ("args:", ARGS), ("resources:", ENOUGH)] {
        if !has(key) && (key != "args:" || !has("command:")) {
            text += &format!("    {line}\n");
        }
    }
    container.iter().for_each(|line| text += &format!("    {line}\n"));
    if !beside.is_empty() {
        text += &format!("---\n{beside}");
    }
    text
}

fn config_map(name: &str, key: &str, lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  {key}: |\n{lines}")
}

const CONFIG_ARGS: &str = "args: [-c, config_file=/etc/pg/postgresql.conf]";
const CONFIG_MOUNT: &str = "volumeMounts: [{name: c, mountPath: /etc/pg}]";
const CONFIG_VOLUME: &str = "volumes: [{name: c, configMap: {name: conf}}]";

#[test]
fn what_was_not_understood_is_unknown() {
    let plain = |line: &str| pod(&[line], &[], "");
    let command = |text: &str| pod(&[&format!("command: {text}")], &[], "");
    let table: Vec<(String, &str)> = vec![
        // Scripts and programs.
        (command("[sh, -c, 'exec docker-entrypoint.sh postgres -c shared_buffers=$SIZE']"), "script"),
        (command("[sh, -c, 'exec docker-entrypoint.sh \"$@\"', --, postgres]"), "script"),
        (command("[sh, -c, 'echo huge_pages=off >> /x; exec postgres']"), "script"),
        (command("[sh, -c, 'cat /x | bash']"), "script"),
        (command("[sh, -c, '. /env; exec docker-entrypoint.sh postgres']"), "script"),
        (command("[sh, -c, 'A=1 postgres -c shared_buffers=1GB']"), "script"),
        (command("[sh, -c, 'postgres -c shared_buffers=`cat /x`']"), "script"),
        (command("[bash, /scripts/run.sh]"), "script"),
        (command("[/scripts/postgres]"), "/scripts/postgres"),
        (command("[gosu, postgres, postgres]"), "gosu"),
        (command("[pg_ctl, -o, '-c shared_buffers=8GB', start]"), "pg_ctl"),
        (command("[patroni, /etc/patroni.yml]"), "patroni"),
        (command("[docker-entrypoint.sh]"), "no program"),
        (command("[sh, -c, 'if true; then exec postgres; else exec postgres -c shared_buffers=8GB; fi']"), "script"),
        (command("[sh, -c, 'exec postgres -c shared_buffers=1GB || exec postgres -c shared_buffers=8GB']"), "script"),
        (command("[sh, -c, 'postgres -c shared_buffers=8GB & wait']"), "script"),
        (command("[su, postgres, -c, 'postgres -B 100000']"), "su"),
        (command("[]\n    args: [run-postgresql]"), "run-postgresql"),
        // The image's user is root.
        (command("[postgres, -c, shared_buffers=1GB, -c, huge_pages=on]"), "as root"),
        (command("[sh, -c, 'exec postgres -c shared_buffers=1GB']"), "as root"),
        (command("[postgres]\n    securityContext: {runAsUser: 0}"), "as root"),
        (plain("args: postgres -c shared_buffers=8GB"), "not a list"),
        // Options.
        (plain("args: [-c, shared_buffers]"), "no value"),
        (plain("args: [-c]"), "no value"),
        (plain("args: [-D, /etc/postgresql]"), "/etc/postgresql"),
        (plain("args: [--data-directory=/other]"), "/other"),
        (plain("args: [--single, x]"), "no value"),
        (plain("args: [-Q, x]"), "-Q"),
        (plain("args: [-v, '196608', -B, 1GB]"), "-v"),
        (plain("args: [-c, shared_buffers=1GB, more]"), "more"),
        (plain("args: [-p, 5432]"), "quotes"),
        (plain("args: [-c, 'shared_buffers = 1GB']"), "\"shared_buffers \""),
        (plain("args: [-c, \"shared_preload_libraries='pg_stat_statements'\"]"), "no library"),
        (plain("args: [-c, config_file=/etc/pg/postgresql.conf]"), "not in the files"),
        // Values.
        (plain("args: [-c, shared_buffers=2Gi]"), "not a size"),
        (plain("args: [-c, shared_buffers=8gb]"), "not a size"),
        (plain("args: [-c, 'shared_buffers=25%']"), "not a size"),
        (plain("args: [-c, huge_pages=maybe]"), "on, off or try"),
        (plain("args: [-c, 'huge_pages= on']"), "on, off or try"),
        (plain("args: [-c, huge_page_size=3MB]"), "huge page"),
        (plain("args: [-c, max_connections=many]"), "number"),
        (plain("args: [-c, max_connections=0]"), "number"),
        (plain("args: [-c, shared_memory_type=windows]"), "mmap"),
        (plain("args: [-N, '1e3']"), "number"),
        (plain("args: [-N, '0100']"), "number"),
        (plain("args: [-N, '300000']"), "number"),
        (plain("args: [-c, shared_buffers=0100MB]"), "not a size"),
        (plain("args: [-c, shared_buffers=8]"), "128 kB or more"),
        (plain("resources: {limits: {memory: 4Gi, hugepages-2Mi: '${PAGES}'}}"), "${PAGES} is not a quantity"),
        (plain("resources: {limits: {memory: 4Gi, hugepages-2Mi: 1GiB}}"), "1GiB is not a quantity"),
        // Variables.
        (
            plain(
                "args: [-c, shared_buffers=$(SIZE)]\n    env: [{name: SIZE, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
            ),
            "SIZE",
        ),
        (plain("args: [-c, shared_buffers=$(SIZE)]"), "not a size"),
        (plain("args: [-c, shared_buffers=$(SIZE)]\n    envFrom: [{configMapRef: {name: none}}]"), "ConfigMap none"),
        (plain("envFrom: [{secretRef: {name: none}}]"), "Secret none"),
        (
            plain("env: [{name: POSTGRES_INITDB_ARGS, valueFrom: {configMapKeyRef: {name: n, key: k}}}]"),
            "POSTGRES_INITDB_ARGS",
        ),
        (plain("env: [{name: POSTGRES_INITDB_ARGS, value: '-c shared_buffers=$SIZE'}]"), "initdb"),
        (plain("env: [{name: POSTGRES_INITDB_ARGS_FILE, value: /x}]"), "initdb"),
        (plain("env: [{name: POSTGRES_INITDB_ARGS, value: '-L /share'}]"), "initdb"),
        (plain("env: [{name: PGPORT, value: 5432}]"), "quotes"),
        (
            pod(&["image: postgres:15", "env: [{name: POSTGRES_INITDB_ARGS, value: '--set huge_pages=off'}]"], &[], ""),
            "no option --set",
        ),
        // Images.
        (plain("image: timescale/timescaledb:2.17.2-pg16"), "timescaledb"),
        (plain("image: registry.example/postgres:17"), "registry.example"),
        (plain("image: registry.redhat.io/rhel9/postgresql-16:1"), "rhel9"),
        (plain("image: docker.io/bitnami/postgresql:17"), "bitnami"),
        (plain("image: ''"), "no image"),
        (plain("image: postgres:12"), "PostgreSQL 12"),
        (plain("image: postgres:21"), "PostgreSQL 21"),
        (plain("image: registry.example/db:1"), "registry.example/db"),
        (plain("image: pgautoupgrade/pgautoupgrade:17-alpine").replace("name: db", "name: main"), "pgautoupgrade"),
        (plain("image: orioledb/orioledb:latest-pg17").replace("name: db", "name: main"), "orioledb"),
        // Mounts.
        (
            pod(
                &["volumeMounts: [{name: c, mountPath: /usr/share/postgresql/postgresql.conf.sample, subPath: p}]"],
                &[CONFIG_VOLUME],
                "",
            ),
            "hides",
        ),
        (
            pod(
                &["volumeMounts: [{name: c, mountPath: /usr/local/bin/docker-entrypoint.sh, subPath: p}]"],
                &[CONFIG_VOLUME],
                "",
            ),
            "hides",
        ),
        (pod(&["volumeMounts: [{name: c, mountPath: /docker-entrypoint-initdb.d}]"], &[CONFIG_VOLUME], ""), "scripts"),
        (
            pod(
                &["volumeMounts: [{name: c, mountPath: /docker-entrypoint-initdb.d}]"],
                &[CONFIG_VOLUME],
                &config_map("conf", "a.sql", &["ALTER SYSTEM SET shared_buffers = '8GB';"]),
            ),
            "a.sql",
        ),
        (
            pod(
                &["volumeMounts: [{name: c, mountPath: /var/lib/postgresql/data/postgresql.conf, subPath: p}]"],
                &[CONFIG_VOLUME],
                "",
            ),
            "data directory",
        ),
        (
            pod(&["image: postgres:18", "volumeMounts: [{name: data, mountPath: /var/lib/postgresql/data}]"], &[], ""),
            "mount it at /var/lib/postgresql",
        ),
        (
            pod(&["volumeMounts: [{name: c, mountPath: /etc/postgresql/conf.d}]"], &[CONFIG_VOLUME], ""),
            "no config_file",
        ),
        (pod(&[CONFIG_ARGS, CONFIG_MOUNT], &[CONFIG_VOLUME], ""), "not in the files"),
        (
            pod(
                &[CONFIG_ARGS, CONFIG_MOUNT],
                &[CONFIG_VOLUME],
                &config_map("conf", "other.conf", &["shared_buffers = 8GB"]),
            ),
            "not in the files",
        ),
        (
            pod(
                &[CONFIG_ARGS, CONFIG_MOUNT],
                &[CONFIG_VOLUME],
                &config_map("conf", "postgresql.conf", &["shared_buffers = 1GB", "include_dir = 'conf.d'"]),
            ),
            "includes",
        ),
        (
            pod(
                &[CONFIG_ARGS, CONFIG_MOUNT],
                &[CONFIG_VOLUME],
                &config_map("conf", "postgresql.conf", &["{{ .Values.config }}"]),
            ),
            "line 1",
        ),
        (
            pod(
                &[CONFIG_ARGS, CONFIG_MOUNT],
                &[CONFIG_VOLUME],
                &config_map("conf", "postgresql.conf", &["data_directory = '/d'"]),
            ),
            "data_directory",
        ),
        // The pod.
        (
            pod(
                &["volumeMounts: [{name: data, mountPath: /var/lib/postgresql/data}]"],
                &[
                    "volumes: [{name: data, emptyDir: {}}]",
                    "initContainers: [{name: tune, image: busybox, command: [sh, -c, 'cp /c /d'], volumeMounts: [{name: data, mountPath: /d}]}]",
                ],
                "",
            ),
            "init container tune",
        ),
        (plain("lifecycle: {postStart: {exec: {command: [sh, -c, x]}}}"), "postStart"),
        (pod(&[], &["runtimeClassName: gvisor"], ""), "runtime class"),
        (
            pod(
                &["resources: {}"],
                &["resources: {limits: {memory: 4Gi, hugepages-2Mi: 1200Mi}}"],
                "",
            )
            .replace("  containers:\n", "  containers:\n  - {name: other, image: dpdk, resources: {limits: {memory: 1Gi, hugepages-2Mi: 600Mi}}}\n"),
            "another container",
        ),
        (pod(&[], &["nodeSelector: {kubernetes.io/arch: arm64}"], ""), "arm64"),
        (pod(&[], &["nodeSelector: {kubernetes.io/arch: ppc64le}"], ""), "ppc64le"),
        // Libraries and settings that no estimate knows.
        (plain("args: [-c, shared_buffers=1GB, -c, max_replication_slots=100000]\n    x: y"), "max_replication_slots"),
        (plain("args: [-c, shared_buffers=1GB, -c, io_max_combine_limit=1MB]\n    x: y").replace("postgres:17", "postgres:18"), "io_max_combine_limit"),
        (plain("args: [-c, shared_buffers=1GB, -c, io_max_concurrency=1024]\n    x: y"), "io_max_concurrency"),
    ];
    assert!(table.len() >= 40);
    for (text, reason) in table {
        let (rows, patch) = judged(&text);
        let row = rows.first().unwrap_or_else(|| panic!("no PostgreSQL in\n{text}"));
        let said = messages(row);
        assert!(
            rows.len() == 1 && ["unknown", "critical"].contains(&row.verdict.as_str()),
            "{}\n{said}\n{text}",
            row.verdict
        );
        assert!(said.contains(reason) && patch.is_empty(), "{reason}: {said}\n{patch}\n{text}");
        assert!(row.huge_pages.is_none() && row.pages_needed_least.is_none(), "{text}");
    }
}

#[test]
fn simple_forms_are_read() {
    let plain = |lines: &[&str]| pod(lines, &[], "");
    let gigabytes = |size: u64| Some(size << 30);
    let table: Vec<(String, &str, &str, Option<u64>)> = vec![
        (plain(&[]), "ok", "on", gigabytes(1)),
        (
            plain(&["command: [sh, -ec, 'exec docker-entrypoint.sh postgres -c shared_buffers=1GB']"]),
            "ok",
            "try",
            gigabytes(1),
        ),
        (
            plain(&[
                "securityContext: {runAsUser: 999}",
                "command: [bash, -c]",
                "args: [\"set -e\\nmkdir -p /x\\nexec postgres \\\\\\n  -c 'shared_buffers=1GB'\"]",
            ]),
            "ok",
            "try",
            gigabytes(1),
        ),
        (
            plain(&[
                "command: [/usr/lib/postgresql/17/bin/postgres, -D, /var/lib/postgresql/data, -B, 1GB]",
                "securityContext: {runAsUser: 999}",
            ]),
            "ok",
            "try",
            gigabytes(1),
        ),
        (plain(&["args: [postgres, --shared-buffers=1GB, -c, huge-pages=on, -ip, '5432']"]), "ok", "on", gigabytes(1)),
        (plain(&["args: [-c, shared_buffers=$(SIZE)]", "env: [{name: SIZE, value: 1GB}]"]), "ok", "try", gigabytes(1)),
        (plain(&["args: [-c, shared_buffers=1GB, -c, 'search_path=$$(user)']"]), "ok", "try", gigabytes(1)),
        (
            pod(
                &["args: [-c, shared_buffers=$(SIZE)]", "envFrom: [{configMapRef: {name: env}}]"],
                &[],
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {SIZE: 1GB, POSTGRES_USER: x}\n",
            ),
            "ok",
            "try",
            gigabytes(1),
        ),
        (
            pod(
                &[CONFIG_ARGS, CONFIG_MOUNT],
                &[CONFIG_VOLUME],
                &config_map("conf", "postgresql.conf", &["shared_buffers = 1GB # x", "huge_pages = on"]),
            ),
            "ok",
            "on",
            gigabytes(1),
        ),
        (
            pod(
                &[
                    "args: [-c, config_file=/etc/pg/postgresql.conf, -c, shared_buffers=4GB]",
                    "volumeMounts: [{name: c, mountPath: /etc/pg/postgresql.conf, subPath: main.conf}]",
                ],
                &["volumes: [{name: c, configMap: {name: conf, items: [{key: k, path: main.conf}]}}]"],
                &config_map("conf", "k", &["shared_buffers = 1GB", "huge_pages = on"]),
            ),
            "critical",
            "on",
            gigabytes(4),
        ),
        (
            plain(&[
                "args: [-c, huge_pages=on]",
                "env: [{name: POSTGRES_INITDB_ARGS, value: '-c shared_buffers=1GB -k'}]",
            ]),
            "ok",
            "on",
            gigabytes(1),
        ),
        // The largest wal_buffers of -1 are one segment.
        (
            plain(&[
                "args: [-c, shared_buffers=1GB]",
                "env: [{name: POSTGRES_INITDB_ARGS, value: --wal-segsize=1024}]",
            ]),
            "ok",
            "try",
            gigabytes(1),
        ),
        (
            pod(
                &["volumeMounts: [{name: c, mountPath: /docker-entrypoint-initdb.d}]"],
                &[CONFIG_VOLUME],
                &config_map("conf", "a.sql", &["CREATE DATABASE shop;"]),
            ),
            "ok",
            "on",
            gigabytes(1),
        ),
        (
            pod(
                &["args: [-c, shared_buffers=1GB, -c, huge_page_size=2MB]"],
                &["nodeSelector: {kubernetes.io/arch: arm64}"],
                "",
            ),
            "ok",
            "try",
            gigabytes(1),
        ),
        (plain(&["args: [-c, shared_bufers=8GB, -c, shared_buffers=1GB]"]), "critical", "try", gigabytes(1)),
        (
            plain(&["image: postgres:13", "args: [-c, huge_page_size=2MB, -c, shared_buffers=1GB]"]),
            "critical",
            "try",
            gigabytes(1),
        ),
        (plain(&["resources: {limits: {memory: 4Gi, hugepages-2048Ki: 1200Mi}}"]), "critical", "on", gigabytes(1)),
        (plain(&["resources: {limits: {memory: 4Gi, hugepages-2M: 1200Mi}}"]), "critical", "on", gigabytes(1)),
    ];
    for (text, verdict, huge_pages, buffers) in table {
        let (rows, _) = judged(&text);
        let row = rows.first().unwrap_or_else(|| panic!("no PostgreSQL in\n{text}"));
        assert_eq!(
            (row.verdict.as_str(), row.huge_pages.as_deref(), row.shared_buffers),
            (verdict, Some(huge_pages), buffers),
            "{}\n{text}",
            messages(row)
        );
    }
}

#[test]
fn documents_that_mention_a_server_are_listed() {
    let template = |kind: &str, api: &str| {
        format!(
            "apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{template: {{spec: {{containers: [{{name: c, image: \
             'postgres:17', args: [-c, shared_buffers=4GB, -c, huge_pages=on]}}]}}}}}}\n"
        )
    };
    let cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {jobTemplate: {spec: {template: {spec: {containers: \
                [{name: c, image: 'postgres:17', args: [-c, shared_buffers=4GB, -c, huge_pages=on]}]}}}}}\n";
    let native = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  initContainers: [{name: c, restartPolicy: Always, image: \
                  'postgres:17', args: [-c, shared_buffers=4GB, -c, huge_pages=on]}]\n  containers: [{name: app, image: app}]\n";
    for text in [
        template("DeploymentConfig", "apps.openshift.io/v1"),
        template("ReplicaSet", "apps/v1"),
        cron.into(),
        native.into(),
    ] {
        let (rows, _) = judged(&text);
        assert!(rows.len() == 1 && rows[0].verdict == "critical", "{text}");
    }
    let custom = |group: &str, kind: &str, spec: &str| {
        format!("apiVersion: {group}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {spec}\n")
    };
    for text in [
        custom("apps.kubeblocks.io/v1alpha1", "Cluster", "{clusterDef: postgresql}"),
        custom("apps.kubeblocks.io/v1", "Cluster", "{componentSpecs: [{componentDef: postgresql-16}]}"),
        custom("apps.kubeblocks.io/v1", "Cluster", "{topology: replication, componentSpecs: [{name: postgresql}]}"),
        custom("apps.kubeblocks.io/v1", "Cluster", "{clusterDef: supabase}"),
        custom("stackgres.io/v1", "SGCluster", "{postgres: {version: '16'}}"),
        custom("kubegres.reactive-tech.io/v1", "Kubegres", "{image: 'postgres:16'}"),
        custom("kubedb.com/v1", "Postgres", "{version: '16.1'}"),
        custom("pg.percona.com/v1", "PerconaPGCluster", "{}"),
        custom("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{chart: {spec: {chart: postgresql}}}"),
        custom("argoproj.io/v1alpha1", "Application", "{source: {chart: postgresql-ha}}"),
        custom("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{chartRef: {kind: OCIRepository, name: postgresql}}"),
        custom("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{}").replace("name: a", "name: shop-postgresql"),
        custom("source.toolkit.fluxcd.io/v1", "OCIRepository", "{url: 'oci://registry-1.docker.io/bitnamicharts/postgresql'}"),
        custom("serving.knative.dev/v1", "Revision", "{containers: [{image: 'postgres:16'}]}"),
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nimages: [{name: postgres, newTag: '16'}]\n".into(),
        "postgresql:\n  primary: {resources: {limits: {hugepages-2Mi: 1Gi}}}\n".into(),
        "image: {repository: bitnami/postgresql}\n".into(),
        "services:\n  db: {image: 'postgres:16', command: postgres -c shared_buffers=8GB}\n".into(),
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: db, resources: {limits: {memory: 1Gi, hugepages-2Mi: 1Gi}}}]}}}\n".into(),
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: postgres, resources: {limits: {memory: 1Gi, hugepages-2Mi: 1Gi}}}]}}}\n".into(),
    ] {
        let (rows, patch) = judged(&text);
        assert!(rows.len() == 1 && rows[0].verdict == "unknown" && patch.is_empty(), "{text}");
    }
}

#[test]
fn what_is_no_server_is_not_listed() {
    let pod = |name: &str, image: &str, command: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: {name}, image: '{image}', command: {command}}}]}}\n"
        )
    };
    for text in [
        pod("rest", "postgrest/postgrest:v12", "[]"),
        pod("api", "postgrest/postgrest:v12", "[postgrest]"),
        pod("backup", "postgres:16", "[pg_dump, -h, db, postgres]"),
        pod("backup", "postgres:16", "[sh, -c, 'set -e; pg_dump -U postgres \"$DB\" | gzip > /b/$(date +%F).gz; find /b -mtime +7 -delete']"),
        pod("backup", "postgres:16", "[sh, -c, 'pg_dump db > /b/$(date +%F)'], envFrom: [{secretRef: {name: none}}]"),
        pod("migrate", "postgres:16", "[psql, -c, 'select 1']"),
        pod("migrate", "postgres:16", "[sh, -c, 'until pg_isready -h db; do sleep 1; done && psql -f /x.sql']"),
        pod("metrics", "quay.io/prometheuscommunity/postgres-exporter:v0.15.0", "[]"),
        pod("operator", "zalando/postgres-operator:v1.14", "[]"),
        pod("pool", "bitnami/pgbouncer:1", "[]"),
        pod("go-postgres-app", "registry.example/go-postgres-app:5", "[]"),
        pod("app", "shop:1", "[shop, --host, postgres]"),
        pod("wait-for-postgres", "busybox", "[sh, -c, 'until nc -z postgres 5432; do sleep 1; done']"),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: app, image: 'app:1', args: [-c, /etc/app.conf]}]}\n".into(),
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop}\nspec: {values: {env: [{name: POSTGRES_HOST}]}}\n".into(),
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: postgres-operator}\nspec: {}\n".into(),
        "apiVersion: v1\nkind: Service\nmetadata: {name: postgres}\nspec: {type: ClusterIP}\n".into(),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: postgres}\ndata: {postgresql.conf: 'shared_buffers = 8GB'}\n".into(),
        "apiVersion: postgresql.cnpg.io/v1\nkind: ScheduledBackup\nmetadata: {name: a}\nspec: {cluster: {name: b}}\n".into(),
        "apiVersion: postgresql.cnpg.io/v1\nkind: DatabaseRole\nmetadata: {name: a}\nspec: {cluster: {name: b}}\n".into(),
        "apiVersion: acid.zalan.do/v1\nkind: PostgresTeam\nmetadata: {name: a}\nspec: {}\n".into(),
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {names: {kind: PostgresCluster}}\n".into(),
    ] {
        let (rows, _) = judged(&text);
        assert!(rows.is_empty(), "{}\n{text}", messages(&rows[0]));
    }
}

/// Custom resources whose operator's version, image or settings are unknown.
#[test]
fn custom_resources() {
    let cluster =
        |group: &str, spec: &str| format!("apiVersion: {group}\nkind: Cluster\nmetadata: {{name: a}}\nspec: {spec}\n");
    let limits = "resources: {limits: {memory: 4Gi, hugepages-2Mi: 1200Mi}}";
    let parameters = "postgresql: {parameters: {shared_buffers: 1GB}}";
    let percona = |version: &str, extensions: &str| {
        format!(
            "apiVersion: pgv2.percona.com/v2\nkind: PerconaPGCluster\nmetadata: {{name: a}}\nspec: {{crVersion: {version}, \
             postgresVersion: 17, extensions: {extensions}, instances: [{{name: i, {limits}}}], patroni: {{dynamicConfiguration: \
             {{postgresql: {{parameters: {{shared_buffers: 1GB}}}}}}}}}}\n"
        )
    };
    let crunchy = |major: u32, parameters: &str| {
        format!(
            "apiVersion: postgres-operator.crunchydata.com/v1beta1\nkind: PostgresCluster\nmetadata: {{name: a}}\nspec: \
             {{postgresVersion: {major}, instances: [{{name: i}}], patroni: {{dynamicConfiguration: {{postgresql: {{parameters: \
             {parameters}}}}}}}}}\n"
        )
    };
    let (cnpg, edb) = ("postgresql.cnpg.io/v1", "postgresql.k8s.enterprisedb.io/v1");
    let of_image =
        |group: &str, image: &str| cluster(group, &format!("{{imageName: '{image}', {parameters}, {limits}}}"));
    for (text, verdict, reason) in [
        (of_image(cnpg, "ghcr.io/cloudnative-pg/postgresql:17.2"), "ok", ""),
        (of_image(edb, "quay.io/enterprisedb/postgresql:16.4"), "ok", ""),
        (cluster(edb, &format!("{{{parameters}, {limits}}}")), "unknown", "does not name the image"),
        (of_image(edb, "docker.enterprisedb.com/k8s/edb-postgres-advanced:16"), "unknown", "edb-postgres-advanced"),
        (of_image(cnpg, "ghcr.io/tensorchord/cloudnative-pgvecto.rs:16.5"), "unknown", "cloudnative-pgvecto"),
        (of_image(cnpg, "ghcr.io/cloudnative-pg/postgresql:19.0"), "unknown", "13 to 18"),
        (
            cluster(
                cnpg,
                &format!(
                    "{{imageCatalogRef: {{name: c, major: 16}}, {parameters}, {limits}}}\n---\nkind: ImageCatalog\nmetadata: {{name: \
                     c}}\nspec: {{images: [{{major: 16, image: 'cloudnative-pg/postgresql:16.4'}}]}}"
                ),
            ),
            "ok",
            "",
        ),
        (cluster(cnpg, &format!("{{imageCatalogRef: {{name: c, major: 16}}, {parameters}, {limits}}}")), "unknown", "catalog c"),
        (cluster(cnpg, &format!("{{postgresql: {{parameters: {{max_connections: 200}}}}, {limits}}}")), "unknown", "quotes"),
        (cluster(cnpg, &format!("{{postgresql: {{parameters: {{huge_pages: on}}}}, {limits}}}")), "unknown", "quotes"),
        (cluster(cnpg, &format!("{{{parameters}, {limits}, bootstrap: {{initdb: {{postInitSQL: [\"ALTER SYSTEM SET shared_buffers='8GB'\"]}}}}}}")), "unknown", "SQL"),
        (cluster(cnpg, &format!("{{postgresql: {{enableAlterSystem: true, parameters: {{shared_buffers: 1GB}}}}, {limits}}}")), "unknown", "ALTER SYSTEM"),
        (cluster(cnpg, &format!("{{postgresql: {{parameters: {{shared_bufers: 1GB}}}}, {limits}}}")), "critical", "shared_bufers"),
        (percona("2.7.0", "{builtin: {pg_stat_monitor: false}}"), "ok", ""),
        (percona("2.7.0", "{}"), "unknown", "pg_stat_monitor"),
        (percona("2.0.0", "{}"), "unknown", "crVersion"),
        (percona("4.0.0", "{}"), "unknown", "crVersion"),
        (crunchy(17, "{}"), "notice", "off"),
        (crunchy(15, "{}"), "unknown", "its version is unknown"),
        (crunchy(19, "{}"), "unknown", "13 to 18"),
        (crunchy(17, "{huge_files: 'off'}"), "warning", "Patroni leaves it out"),
        ("apiVersion: acid.zalan.do/v1\nkind: postgresql\nmetadata: {name: a}\nspec: {postgresql: {version: '16'}}\n".into(), "unknown", "Spilo"),
    ] {
        let (rows, _) = judged(&text);
        let said = messages(&rows[0]);
        assert!(rows[0].verdict == verdict && said.contains(reason), "{}: {said}\n{text}", rows[0].verdict);
    }
}
