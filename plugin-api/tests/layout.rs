//! The golden layout: every type that crosses, as text. A change here that is not an addition at the end of a trait, a
//! new variant of `TurnEvent` or a new root function breaks every plugin there is; see the rules in `src/lib.rs`.
//! After a lawful addition: `BATON_BLESS=1 cargo test -p plugin-api@1.0.0 --test layout`.
#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::fmt::Write as _;
use std::path::Path;

use plugin_api::abi_stable::StableAbi;
use plugin_api::abi_stable::std_types::{RArc, RBox, UTypeId};
use plugin_api::abi_stable::type_layout::TypeLayout;
use plugin_api::descriptor::{API_MAJOR, API_MINOR};
use plugin_api::module::PluginModuleRef;
use plugin_api::plugin::Plugin_trait::VTable_Ref as PluginMethods;
use plugin_api::services::HostServices_trait::VTable_Ref as HostMethods;

#[test]
fn the_layout_is_the_recorded_one() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layout.txt");
    let now = layout();
    if cfg!(feature = "v-next") {
        assert_eq!(
            (API_MAJOR, API_MINOR),
            (1, 1),
            "additions are a minor version"
        );
        return;
    }
    if std::env::var_os("BATON_BLESS").is_some() {
        use std::io::Write;
        let mut file = std::fs::File::create(&golden).unwrap();
        file.write_all(now.as_bytes()).unwrap();
    }
    let recorded = std::fs::read_to_string(&golden).unwrap();
    for (index, (was, is)) in recorded.lines().zip(now.lines()).enumerate() {
        assert_eq!(was, is, "line {} of the layout", index + 1);
    }
    assert_eq!(recorded.lines().count(), now.lines().count());
}

/// Every type that crosses, once: name, size, alignment, fields with their types, functions with their parameters.
fn layout() -> String {
    let mut seen = Vec::new();
    let mut text = String::new();
    let roots = [
        <PluginModuleRef as StableAbi>::LAYOUT,
        <PluginMethods<(), RBox<()>> as StableAbi>::LAYOUT,
        <HostMethods<(), RArc<()>> as StableAbi>::LAYOUT,
    ];
    for root in roots {
        describe(root, &mut seen, &mut text);
    }
    text
}

fn describe(layout: &'static TypeLayout, seen: &mut Vec<UTypeId>, text: &mut String) {
    let name = layout.full_type().to_string();
    let id = layout.get_utypeid();
    if seen.contains(&id) {
        return;
    }
    seen.push(id);
    let mut inner = Vec::new();
    writeln!(
        text,
        "{name} size {} align {}",
        layout.size(),
        layout.alignment()
    )
    .unwrap();
    let fields = layout
        .get_fields()
        .into_iter()
        .flat_map(|fields| fields.iter());
    for field in fields.chain(layout.phantom_fields().iter()) {
        write!(text, "  {}: {}", field.name(), field.full_type()).unwrap();
        for function in field.function_range().iter() {
            inner.extend(function.param_type_layouts.iter().map(|of| of()));
            inner.extend(function.return_type_layout().map(|of| of()));
            let words = function.to_string();
            let words: Vec<&str> = words.split_whitespace().collect();
            write!(text, " {}", words.join(" ")).unwrap();
        }
        text.push('\n');
        inner.push(field.layout());
    }
    for layout in inner {
        describe(layout, seen, text);
    }
}
