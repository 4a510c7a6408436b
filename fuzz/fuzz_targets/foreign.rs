//! Feeds one parser, named by `BATON_FOREIGN_BODY`. One program for all of them: it is built once.
#![no_main]

#[allow(dead_code, reason = "shared with the property tests")]
#[path = "../../tests/foreign/bodies.rs"]
mod bodies;

use std::sync::LazyLock;

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("BATON_FOREIGN_BODY").expect("BATON_FOREIGN_BODY names the parser");
    bodies::body(&name).run
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (*RUN)(data));
