//! Where systemd has its units, and the keys by which they run something (systemd.unit(5), systemd.exec(5)).

/// Where units are, the most important first. The generators make theirs at each boot anew.
pub const DIRECTORIES: [&str; 8] = [
    "/etc/systemd/system.control",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];
/// Targets that are no part of an ordinary boot.
pub const OTHER_TARGETS: [&str; 6] = ["shutdown", "reboot", "poweroff", "halt", "kexec", "emergency"];
/// What starts another unit with this one.
pub const PULLS_IN: [&str; 9] =
    ["Wants", "Requires", "Requisite", "BindsTo", "Upholds", "OnSuccess", "Unit", "Service", "Sockets"];
pub const RUNS: [&str; 5] = ["ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition", "EnvironmentFile"];
