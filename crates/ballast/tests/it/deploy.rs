//! What deploy/ has from this program, and the program as kubectl's plugin.

use crate::support::{outcome, run};
use std::path::Path;
use std::process::Command;

#[test]
fn the_role_in_deploy_is_the_one_that_is_printed() {
    let (code, role, err) = run(&["azure-role", "-o", "json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/azure/role.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &role).unwrap();
    }
    let hint = "deploy/azure/role.json is out of date: \
                UPDATE_DOCS=1 cargo test -p ballast --test it deploy";
    assert!(std::fs::read_to_string(&path).unwrap_or_default() == role, "{hint}");
}

#[test]
fn kubectl_is_told_what_could_come_next() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("kubectl_complete-ballast");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ballast"), &link).unwrap();
    let ask = |words: &[&str]| outcome(Command::new(&link).args(words).output().unwrap());
    let (code, out, err) = ask(&["status", "--serv"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("--server\t") && out.ends_with(":4\n"), "{out}");
    assert_eq!(
        ask(&["azure-role", "--for", "cont"]).1,
        "container\tContainer load balancers\n:4\n"
    );
}
