//! The SQL functions of the extension: each runs its body with a reserve of memory, and by the wrapper for it: `rows::return_rows` takes it too.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;

#[test]
fn every_sql_function_runs_with_a_reserve() {
    // At run time, so that the compiled test can be pointed to another checkout.
    let manifest =
        std::env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    let (mut found, mut without) = (0, Vec::new());
    for entry in fs::read_dir(Path::new(&manifest).join("../../src/views")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for function in text.split("#[pg_extern").skip(1) {
            found += 1;
            let (_, function) = function.split_once("fn ").unwrap();
            let (_, body) = function.split_once(" {\n").unwrap();
            let has_reserve = ["memory::with_reserve", "rows::return_rows"]
                .iter()
                .any(|wrapper| body.trim_start().starts_with(wrapper));
            if !has_reserve {
                without.push(format!(
                    "{}: {}",
                    path.display(),
                    function.split('(').next().unwrap()
                ));
            }
        }
    }
    assert!(found >= 11, "the functions are found");
    assert_eq!(without, Vec::<String>::new());
}
