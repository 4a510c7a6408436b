//! `/plugins`: where each plugin of the profile stands. For operators.

use gateway_core::command::{CommandReply, CommandSpec};
use gateway_core::message::Audience;

use crate::view::{PluginLine, View};
use crate::{Command, count, to_asker};

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "plugins",
        aliases: &[],
        summary: "Shows the plugins of this profile and how each fares.",
        argument: "",
        audience: Audience::Asker,
        operators_only: true,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    if view.plugins.is_empty() {
        return to_asker(format!("Profile {} names no plugins.", view.profile));
    }
    let lines: Vec<String> = view.plugins.iter().map(line).collect();
    to_asker(lines.join("\n"))
}

fn line(plugin: &PluginLine) -> String {
    let version = plugin.version.as_deref();
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    let mut line = format!("{}{version}: {}", plugin.name, plugin.state);
    if plugin.calls > 0 {
        let calls = usize::try_from(plugin.calls).unwrap_or(usize::MAX);
        line.push_str(&format!(", {}", count(calls, "call")));
    }
    if plugin.failures > 0 {
        line.push_str(&format!(", {} failed", plugin.failures));
    }
    if let Some(error) = &plugin.last_error {
        line.push_str(&format!("\n  last error: {error}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::view;

    #[test]
    fn each_plugin_with_its_state_and_what_went_wrong() {
        let mut view = view();
        if let Some(quota) = view.plugins.first_mut() {
            quota.calls = 1;
        }
        if let Some(handoff) = view.plugins.last_mut() {
            handoff.failures = 3;
            handoff.state = "disabled: panics".to_owned();
            handoff.last_error = Some("boom at 1000".to_owned());
        }
        view.plugins.push(PluginLine {
            name: "greeter".to_owned(),
            version: None,
            state: "disabled: load".to_owned(),
            calls: 0,
            failures: 0,
            last_error: None,
        });
        insta::assert_snapshot!(run("", &view).text, @r"
        quota 0.1.0: active, 1 call
        handoff 0.1.0: disabled: panics, 12 calls, 3 failed
          last error: boom at 1000
        greeter: disabled: load
        ");
    }

    #[test]
    fn none_is_said() {
        let mut view = view();
        view.plugins.clear();
        assert_eq!(run("", &view).text, "Profile default names no plugins.");
    }
}
