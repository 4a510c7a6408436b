//! `/usage` and `baton usage`: every subscription's windows as they were last read. What is unknown is called unknown; a
//! reading always carries its age and its source, because an old one may be wrong. Pure: the same sheet gives the same text.

use gateway_core::command::{CommandReply, CommandSpec};
use gateway_core::message::Audience;
use gateway_core::usage::freshness::{Freshness, freshness, is_exhausted};
use gateway_core::usage::scope::{self, Reach};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::view::{EntryState, Verdict, View};
use crate::when::clock;
use crate::{Command, to_asker};

/// Cells of a bar, and of one where there is little room.
const CELLS: usize = 10;
const FEW_CELLS: usize = 5;
/// From here on a window is nearly full, in points of 100.
const NEARLY_FULL: f64 = 80.0;
/// Narrower than this nothing is fitted: one fact a line is as short as it gets.
const NARROW: usize = 44;

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "usage",
        aliases: &[],
        summary: "Shows the windows and resets of the subscriptions, with the age of each reading.",
        argument: "",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    if view.chain.is_empty() {
        return to_asker(format!(
            "The chain of profile {} is empty: there is no subscription to show.",
            view.profile
        ));
    }
    to_asker(render(&UsageSheet {
        now: view.now,
        zone: &view.zone,
        entries: &view.chain,
        width: None,
        colour: false,
    }))
}

/// What is shown, and where.
#[derive(Debug, Clone, Copy)]
pub struct UsageSheet<'a> {
    pub now: Timestamp,
    /// The zone clock times are shown in.
    pub zone: &'a TimeZone,
    /// One per route; routes of one subscription make one block.
    pub entries: &'a [EntryState],
    /// Columns there are; `None` = as many as it takes.
    pub width: Option<usize>,
    pub colour: bool,
}

/// How much room a subscription has for one model, in a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
    /// Fresh readings, none nearly full.
    HasRoom,
    /// A fresh reading at 80 % or more, or a warning of the provider.
    NearlyFull,
    /// A window is full and nobody said when it resets: it is tried.
    Full,
    /// Spent, and when it comes back.
    Spent { window: String, until: Timestamp },
    /// Nothing was read yet, or nothing that still counts: it is tried.
    Unknown,
    /// Metered, and nobody opted in.
    PassedOver,
    /// Its login is refused; left out until the operator has seen to it.
    LockedOut,
}

impl Room {
    /// The word in machine-readable output.
    pub fn word(&self) -> &'static str {
        match self {
            Self::HasRoom => "has_room",
            Self::NearlyFull => "nearly_full",
            Self::Full => "full",
            Self::Spent { .. } => "spent",
            Self::Unknown => "unknown",
            Self::PassedOver => "passed_over",
            Self::LockedOut => "locked_out",
        }
    }
}

/// Judges an entry for people. Whether a turn would try it is its [`Verdict`]; this adds how sure that is.
pub fn room(entry: &EntryState, now: Timestamp) -> Room {
    match &entry.verdict {
        Verdict::Spent { window, until } => Room::Spent {
            window: window.clone(),
            until: *until,
        },
        Verdict::PassedOver => Room::PassedOver,
        Verdict::LockedOut => Room::LockedOut,
        Verdict::Eligible => open_room(entry, now.as_millisecond()),
    }
}

fn open_room(entry: &EntryState, now_ms: i64) -> Room {
    let model = entry.route.model.as_str();
    let applies = |reading: &&Reading| {
        reading.source != ReadingSource::Rollout
            && match scope::reach(&reading.window, scope::view(reading.scope.as_ref())) {
                Reach::Account => true,
                Reach::Model(family) => scope::fits(family, model),
                Reach::Bucket(_) | Reach::Spend | Reach::Unknown => false,
            }
    };
    let fresh = |reading: &&Reading| {
        matches!(
            freshness(&reading.view(), now_ms),
            Freshness::Fresh | Freshness::Resetless
        )
    };
    let known: Vec<&Reading> = entry
        .readings
        .iter()
        .filter(applies)
        .filter(fresh)
        .collect();
    let full = |reading: &&&Reading| is_exhausted(&reading.view(), now_ms);
    let nearly = |reading: &&&Reading| {
        reading.status == WindowStatus::Warning
            || reading.used_pct.is_some_and(|used| used >= NEARLY_FULL)
    };
    if known.is_empty() {
        Room::Unknown
    } else if known.iter().any(|reading| full(&reading)) {
        Room::Full
    } else if known.iter().any(|reading| nearly(&reading)) {
        Room::NearlyFull
    } else {
        Room::HasRoom
    }
}

/// The whole sheet as text; no line break at its end.
pub fn render(sheet: &UsageSheet<'_>) -> String {
    let at = sheet
        .now
        .to_zoned_datetime(sheet.zone.clone())
        .strftime("%H:%M %Z");
    let blocks = subscriptions(sheet.entries).map(|entry| block(entry, sheet));
    std::iter::once(format!("Usage at {at}"))
        .chain(blocks)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The first entry of each subscription; further models of one show the same windows.
pub fn subscriptions(entries: &[EntryState]) -> impl Iterator<Item = &EntryState> {
    entries.iter().enumerate().filter_map(|(position, entry)| {
        let seen = entries
            .iter()
            .take(position)
            .any(|earlier| earlier.route.subscription == entry.route.subscription);
        (!seen).then_some(entry)
    })
}

fn block(entry: &EntryState, sheet: &UsageSheet<'_>) -> String {
    let mut lines = vec![format!(
        "{}: {}",
        entry.route.subscription,
        rooms(entry, sheet)
    )];
    if !entry.shares.is_empty() {
        lines.push(format!(
            "  shares one allowance with {}",
            entry.shares.join(", ")
        ));
    }
    let rows: Vec<Row> = entry
        .readings
        .iter()
        .map(|reading| Row::of(reading, sheet))
        .collect();
    lines.extend(fitted(&rows, sheet));
    lines.join("\n")
}

/// The subscription's room; one per model where its models differ.
fn rooms(entry: &EntryState, sheet: &UsageSheet<'_>) -> String {
    let models: Vec<&EntryState> = sheet
        .entries
        .iter()
        .filter(|other| other.route.subscription == entry.route.subscription)
        .collect();
    let first = room(entry, sheet.now);
    if models.iter().all(|model| room(model, sheet.now) == first) {
        return say(&first, entry, sheet);
    }
    models
        .into_iter()
        .map(|model| {
            let said = say(&room(model, sheet.now), model, sheet);
            format!("{} {said}", model.route.model)
        })
        .collect::<Vec<_>>()
        .join("; ")
}

fn say(room: &Room, entry: &EntryState, sheet: &UsageSheet<'_>) -> String {
    let (text, colour) = match room {
        Room::HasRoom => ("has room".to_owned(), Colour::Green),
        Room::NearlyFull => ("nearly full".to_owned(), Colour::Yellow),
        Room::Full => (
            "full, reset unknown, so it is tried".to_owned(),
            Colour::Red,
        ),
        Room::Spent { window, until } => (
            format!("spent until {} ({})", when(*until, sheet), plain(window)),
            Colour::Red,
        ),
        Room::Unknown if entry.readings.is_empty() => (
            "unknown, nothing was read yet, so it is tried".to_owned(),
            Colour::None,
        ),
        Room::Unknown => (
            "unknown, nothing fresh was read, so it is tried".to_owned(),
            Colour::None,
        ),
        Room::PassedOver => ("metered, passed over".to_owned(), Colour::None),
        Room::LockedOut => (
            "its login is refused, left out; see `baton doctor`".to_owned(),
            Colour::Red,
        ),
    };
    paint(&text, colour, sheet.colour)
}

/// `eligible`, `spent until 15:00 (in 6h)`, `metered, passed over`, with "unknown" where nothing was read; for commands that
/// speak of routes rather than windows.
pub(crate) fn verdict(entry: &EntryState, view: &View) -> String {
    match &entry.verdict {
        Verdict::Spent { window, until } => {
            format!("spent until {} by {}", clock(*until, view), plain(window))
        }
        Verdict::PassedOver => "metered, passed over".to_owned(),
        Verdict::LockedOut => "its login is refused, left out; see `baton doctor`".to_owned(),
        Verdict::Eligible if entry.readings.is_empty() => "unknown, so it is tried".to_owned(),
        Verdict::Eligible => "eligible".to_owned(),
    }
}

/// One window's line in its parts.
struct Row {
    name: String,
    used_pct: Option<f64>,
    colour: Colour,
    status: &'static str,
    reset: String,
    provenance: String,
}

impl Row {
    fn of(reading: &Reading, sheet: &UsageSheet<'_>) -> Self {
        let now_ms = sheet.now.as_millisecond();
        let colour = match reading.used_pct {
            _ if is_exhausted(&reading.view(), now_ms) => Colour::Red,
            _ if reading.status == WindowStatus::Warning => Colour::Yellow,
            Some(used) if used >= NEARLY_FULL => Colour::Yellow,
            Some(_) => Colour::Green,
            None => Colour::None,
        };
        Self {
            name: name(reading),
            used_pct: reading.used_pct.filter(|used| used.is_finite()),
            colour,
            status: status(reading.status),
            reset: reset(reading, sheet),
            provenance: provenance(reading, sheet),
        }
    }

    fn meter(&self, cells: usize, sheet: &UsageSheet<'_>) -> String {
        let meter = paint(&bar(self.used_pct, cells), self.colour, sheet.colour);
        format!("{meter}{}", self.status)
    }

    /// Columns of the meter without its colour.
    fn meter_width(&self, cells: usize) -> usize {
        bar(self.used_pct, cells).chars().count() + self.status.chars().count()
    }
}

/// The rows in columns: on one line each, or with what does not fit on lines of its own.
fn fitted(rows: &[Row], sheet: &UsageSheet<'_>) -> Vec<String> {
    let widest = |width: &dyn Fn(&Row) -> usize| rows.iter().map(width).max().unwrap_or(0);
    let name = widest(&|row| row.name.chars().count());
    let room = sheet.width.unwrap_or(usize::MAX);
    let cells = if room < NARROW { FEW_CELLS } else { CELLS };
    let meter = widest(&|row| row.meter_width(cells));
    let reset = widest(&|row| row.reset.chars().count());
    let provenance = widest(&|row| row.provenance.chars().count());
    let head = 2 + name + 2 + meter;
    let one_line = head + 2 + reset + 2 + provenance <= room;
    let with_reset = head + 2 + reset <= room;
    let mut lines = Vec::new();
    for row in rows {
        let pad = " ".repeat(meter.saturating_sub(row.meter_width(cells)));
        let start = format!("  {:name$}  {}", row.name, row.meter(cells, sheet));
        if one_line {
            lines.push(format!(
                "{start}{pad}  {:reset$}  {}",
                row.reset, row.provenance
            ));
        } else if with_reset {
            lines.push(format!("{start}{pad}  {}", row.reset));
            lines.push(format!("    {}", row.provenance));
        } else {
            lines.push(start);
            lines.push(format!("    {}", row.reset));
            lines.push(format!("    {}", row.provenance));
        }
    }
    lines
}

/// Longest name shown, in characters; ids of providers have at most 30.
const NAME_CHARS: usize = 48;
/// More is shown as more than this, in points of 100.
const MOST_SHOWN: f64 = 999.0;

/// A name that came from outside, for a terminal or a chat: no control characters (they would steer the terminal), nothing
/// that turns the direction of writing, and not without end.
fn plain(name: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut shown: String = name
        .chars()
        .take(NAME_CHARS)
        .map(|c| if steers(c) { '\u{fffd}' } else { c })
        .collect();
    if name.chars().nth(NAME_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// The window's id, with what it limits where the id does not say so; as [`plain`] as it is shown.
fn name(reading: &Reading) -> String {
    plain(&full_name(reading))
}

fn full_name(reading: &Reading) -> String {
    match scope::reach(&reading.window, scope::view(reading.scope.as_ref())) {
        Reach::Model(family)
            if !reading
                .window
                .to_lowercase()
                .contains(&family.to_lowercase()) =>
        {
            format!("{} ({family})", reading.window)
        }
        Reach::Bucket(bucket) if !reading.window.contains(bucket) => {
            format!("{} ({bucket})", reading.window)
        }
        _ => reading.window.clone(),
    }
}

/// `███░░░░░░░  34%`, or an empty bar and `unknown`. More than all is shown as it is, on a full bar.
fn bar(used_pct: Option<f64>, cells: usize) -> String {
    let Some(used) = used_pct.filter(|used| used.is_finite()) else {
        return format!("{} unknown", "░".repeat(cells));
    };
    let full = (1..=cells)
        .filter(|cell| used >= 100.0 / cells as f64 * (*cell as f64 - 0.5))
        .count();
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(cells - full));
    match used > MOST_SHOWN {
        true => format!("{bar} >{MOST_SHOWN:.0}%"),
        false => format!("{bar} {used:>3.0}%"),
    }
}

fn status(status: WindowStatus) -> &'static str {
    match status {
        WindowStatus::Unknown | WindowStatus::Allowed => "",
        WindowStatus::Warning => " warning",
        WindowStatus::Rejected => " refused",
    }
}

fn reset(reading: &Reading, sheet: &UsageSheet<'_>) -> String {
    match reading.resets_at {
        None => "reset unknown".to_owned(),
        Some(at) if at <= sheet.now => format!("reset was due {}", when(at, sheet)),
        Some(at) => format!("resets {}", when(at, sheet)),
    }
}

fn provenance(reading: &Reading, sheet: &UsageSheet<'_>) -> String {
    let source = match reading.source {
        ReadingSource::Failure => "by refusal",
        ReadingSource::Event => "by event",
        ReadingSource::Header => "by header",
        ReadingSource::Probe => "by probe",
        ReadingSource::Hub => "by the hub",
        ReadingSource::Rollout => "from an old session, for display only",
    };
    let Some(at) = reading.observed_at else {
        return format!("age unknown, {source}");
    };
    let doubt = match freshness(&reading.view(), sheet.now.as_millisecond()) {
        Freshness::Stale => " (stale)",
        Freshness::Rolled => " (its cycle is over)",
        Freshness::Future => " (stamped ahead of the clock)",
        Freshness::Fresh | Freshness::Resetless | Freshness::Undated => "",
    };
    format!("read {} {source}{doubt}", distance(at, sheet.now))
}

/// `15:00, in 2h 13m`, with the day when it is another one.
fn when(at: Timestamp, sheet: &UsageSheet<'_>) -> String {
    let there = at.to_zoned_datetime(sheet.zone.clone());
    let here = sheet.now.to_zoned_datetime(sheet.zone.clone());
    let form = match there.date() == here.date() {
        true => "%H:%M",
        false => "%a %-d %b %H:%M",
    };
    format!("{}, {}", there.strftime(form), distance(at, sheet.now))
}

/// `in 2h 13m`, `40 s ago`, `now`. What is to come is rounded up to the minute, what has passed down.
fn distance(at: Timestamp, now: Timestamp) -> String {
    match now.as_second() - at.as_second() {
        0 => "now".to_owned(),
        ago @ 1.. => format!("{} ago", span(ago)),
        ahead @ -59..0 => format!("in {}", span(-ahead)),
        ahead => format!("in {}", span((-ahead + 59) / 60 * 60)),
    }
}

/// `40 s`, `12m`, `2h 13m`, `3d 4h`.
fn span(seconds: i64) -> String {
    let two = |large: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit} {small}{part}"),
    };
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

#[derive(Debug, Clone, Copy)]
enum Colour {
    None,
    Green,
    Yellow,
    Red,
}

fn paint(text: &str, colour: Colour, on: bool) -> String {
    let code = match colour {
        Colour::None => return text.to_owned(),
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Red => 31,
    };
    match on {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
