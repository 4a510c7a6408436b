//! `/status`: what serves this conversation now, since when and why; what waits; what is saved.

use gateway_core::command::{CommandReply, CommandSpec};
use gateway_core::handoff::HandoffState;
use gateway_core::message::Audience;

use crate::resume_handoff::SWITCHED_OFF;
use crate::view::{Because, Serving, View};
use crate::when::{clock, span};
use crate::{Command, count, to_asker};

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "status",
        aliases: &[],
        summary: "Shows what serves this conversation now, since when and why.",
        argument: "",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    let mut lines = vec![
        format!(
            "Profile {}, conversation since {}.",
            view.profile,
            clock(view.conversation_started_at, view)
        ),
        serving(view),
    ];
    lines.extend(chosen(view));
    lines.push(turn(view));
    lines.push(next(view));
    lines.extend(routing(view));
    lines.extend(handoffs(view));
    lines.extend(plugins(view));
    to_asker(lines.join("\n"))
}

fn serving(view: &View) -> String {
    let Some(Serving {
        route,
        since,
        because,
    }) = &view.serving
    else {
        return "Served by: nobody yet; no turn of this conversation has been answered.".to_owned();
    };
    let why = match because {
        Because::Chosen => "chosen with /model".to_owned(),
        Because::FirstInChain => "first in the chain".to_owned(),
        Because::Fallback { before } => {
            format!("the {} before it did not serve", count(*before, "route"))
        }
        Because::Earlier => "it is in the chain no longer".to_owned(),
    };
    format!("Served by: {route} since {}: {why}.", clock(*since, view))
}

fn routing(view: &View) -> Option<String> {
    let routing = view.routing.as_ref()?;
    if routing.paused {
        return Some("Routing: paused; `/pause off` switches it on again.".to_owned());
    }
    let (used, cap) = routing.switches;
    let mut line = format!("Routing: on; {used} of {cap} automatic switches used in 24h");
    if let Some(waits_for) = &routing.waits_for {
        let until = routing
            .until
            .map_or_else(|| "an unknown time".to_owned(), |until| clock(until, view));
        line.push_str(&format!("; waits for {waits_for} until {until}"));
    }
    if let Some(place) = &routing.came_from {
        line.push_str(&format!("; `/switch-back` goes to {place}"));
    }
    line.push('.');
    Some(line)
}

fn chosen(view: &View) -> Option<String> {
    let route = view.chosen.as_ref()?;
    Some(format!(
        "Chosen: {route}. `/model auto` goes back to the chain."
    ))
}

fn turn(view: &View) -> String {
    let queued = count(view.queued, "message");
    match (view.turn, view.queued) {
        (None, 0) => "Turn: none is running.".to_owned(),
        (None, _) => format!("Turn: none is running; {queued} queued."),
        (Some(turn), _) => {
            let seconds = view.now.as_second() - turn.started_at.as_second();
            format!(
                "Turn: running for {}; {queued} queued.",
                span(seconds.max(0))
            )
        }
    }
}

/// What the next turn would start with, or until when it waits.
fn next(view: &View) -> String {
    let chosen = view.chosen.as_ref().and_then(|route| view.entry(route));
    let first = chosen
        .filter(|entry| entry.verdict.is_eligible())
        .or_else(|| view.chain.iter().find(|entry| entry.verdict.is_eligible()));
    match (first, view.waiting_until()) {
        (Some(entry), _) => format!("Next turn starts with: {}.", entry.route),
        (None, Some(at)) => format!(
            "Waiting: no route of the chain has room; the soonest resets {}.",
            clock(at, view)
        ),
        (None, None) => {
            "Waiting: no route of the chain can serve, and no reset is known.".to_owned()
        }
    }
}

fn handoffs(view: &View) -> Vec<String> {
    if !view.handoffs_enabled {
        return vec![SWITCHED_OFF.to_owned()];
    }
    let with = |state| {
        view.handoffs
            .iter()
            .any(|stored| stored.standing(view.now) == state)
    };
    let mut lines = Vec::new();
    if let Some(stored) = view.pending().next() {
        lines.push(format!(
            "Handoff: saved {}, goes with your next message; valid until {}. /resume-handoff shows it.",
            clock(stored.handoff.created_at, view),
            clock(stored.handoff.expires_at, view),
        ));
    }
    if with(HandoffState::Claimed) {
        lines.push("Handoff: the running turn carries one.".to_owned());
    }
    if with(HandoffState::Stopped) {
        lines.push(
            "Handoff: a turn you stopped is kept to look at. /resume-handoff shows it.".to_owned(),
        );
    }
    if with(HandoffState::Corrupt) {
        lines.push(
            "Handoff: one is damaged and was set aside; nothing of it was injected.".to_owned(),
        );
    }
    if lines.is_empty() {
        lines.push("Handoff: none saved.".to_owned());
    }
    lines
}

fn plugins(view: &View) -> Option<String> {
    let each: Vec<String> = view
        .plugins
        .iter()
        .map(|plugin| format!("{} {}", plugin.name, plugin.state))
        .collect();
    (!each.is_empty()).then(|| format!("Plugins: {}.", each.join(", ")))
}

#[cfg(test)]
mod tests {
    use gateway_core::route::Route;

    use super::*;
    use crate::fixture::{at, handoff, view};
    use crate::view::{RunningTurn, Verdict};

    #[test]
    fn a_quiet_conversation_on_a_fallback() {
        insta::assert_snapshot!(run("", &view()).text, @r"
        Profile default, conversation since 08:12 (48m ago).
        Served by: gpt-plus/gpt-6.1-sol since 08:55 (5m ago): the 1 route before it did not serve.
        Turn: none is running.
        Next turn starts with: gpt-plus/gpt-6.1-sol.
        Handoff: none saved.
        Plugins: quota active, handoff active.
        ");
    }

    #[test]
    fn everything_at_once() {
        let mut view = view();
        view.chosen = Some(Route::new("claude-work", "opus"));
        view.turn = Some(RunningTurn {
            started_at: at(-42),
        });
        view.queued = 2;
        view.chain[1].verdict = Verdict::Spent {
            window: "primary".to_owned(),
            until: at(3_600),
        };
        view.handoffs = vec![
            handoff(HandoffState::Armed),
            handoff(HandoffState::Claimed),
            handoff(HandoffState::Stopped),
            handoff(HandoffState::Corrupt),
        ];
        insta::assert_snapshot!(run("", &view).text, @r"
        Profile default, conversation since 08:12 (48m ago).
        Served by: gpt-plus/gpt-6.1-sol since 08:55 (5m ago): the 1 route before it did not serve.
        Chosen: claude-work/opus. `/model auto` goes back to the chain.
        Turn: running for 42s; 2 messages queued.
        Waiting: no route of the chain has room; the soonest resets 10:00 (in 60m).
        Handoff: saved 08:50 (10m ago), goes with your next message; valid until Tue 22 Sep 08:50 (in 23.8h). /resume-handoff shows it.
        Handoff: the running turn carries one.
        Handoff: a turn you stopped is kept to look at. /resume-handoff shows it.
        Handoff: one is damaged and was set aside; nothing of it was injected.
        Plugins: quota active, handoff active.
        ");
    }

    #[test]
    fn an_expired_handoff_is_not_pending_and_a_switched_off_plugin_is_said() {
        let mut view = view();
        view.handoffs = vec![handoff(HandoffState::Armed)];
        view.handoffs[0].handoff.expires_at = at(-1);
        assert!(run("", &view).text.contains("Handoff: none saved."));
        view.handoffs_enabled = false;
        assert!(run("", &view).text.contains(SWITCHED_OFF));
    }

    #[test]
    fn the_reason_follows_from_choice_and_position() {
        let chain = view().chain;
        let first = Route::new("claude-work", "opus");
        let third = Route::new("fireworks", "kimi-k3");
        let rows = [
            (first.clone(), None, Because::FirstInChain),
            (first.clone(), Some(&first), Because::Chosen),
            (third.clone(), Some(&first), Because::Fallback { before: 2 }),
            (Route::new("gone", "m"), None, Because::Earlier),
        ];
        for (route, chosen, because) in rows {
            assert_eq!(Serving::new(route, at(0), chosen, &chain).because, because);
        }
    }

    #[test]
    fn a_new_conversation_is_served_by_nobody_yet() {
        let mut view = view();
        view.serving = None;
        assert!(run("", &view).text.contains("nobody yet"));
    }
}
