//! Where code fences stand, line by line, as CommonMark 0.31 section 4.5 has it: three or more backticks or tildes, closed
//! by a line of the same kind that is at least as long. Fences inside list items count from the item's own margin.
//! Two differences: block quotes are not followed, and a line that leaves the list item does not end the item's fence,
//! because chat clients pair fence with fence and people who write code left of its bullet mean it so.

use super::unit::Unit;

/// Columns beyond its container from which on a line is indented code, not a fence.
const TOO_DEEP: usize = 4;

/// The widest indent of a list item that is followed, in columns.
const DEEPEST_ITEM: usize = 24;

/// What is open behind a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) fence: Option<Fence>,
    /// The margin of the list item the line belongs to, in columns; 0 = in no list.
    item: usize,
}

/// An open code fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    /// The margin of the list item it stands in, in columns.
    item: usize,
    /// Columns before the marker, the item's margin included.
    indent: usize,
    /// Its run of backticks or tildes.
    marker: String,
    /// What follows the marker, if short enough to be said again.
    language: String,
}

impl Fence {
    /// The line that opens it again at the head of a piece, where no list item is open any more.
    pub(super) fn opening(&self) -> String {
        let indent = self.indent.min(TOO_DEEP - 1);
        format!("{:indent$}{}{}\n", "", self.marker, self.language)
    }

    /// The line that closes it, without a line feed. `again` = in a piece that opened it again.
    pub(super) fn closing(&self, again: bool) -> String {
        let indent = match again {
            true => self.indent.min(TOO_DEEP - 1),
            false => self.indent,
        };
        format!("{:indent$}{}", "", self.marker)
    }
}

/// One line, read as far as fences need it.
struct Line<'a> {
    /// Columns before the text, the bullets of list items included.
    indent: usize,
    /// The margin its last bullet opens; `None` = it has no bullet.
    bullet: Option<usize>,
    text: &'a str,
}

impl Open {
    /// What is open behind `line`. `limit` bounds what a fence may cost, in `unit`.
    pub(super) fn after(&self, line: &str, limit: usize, unit: Unit) -> Self {
        match &self.fence {
            Some(fence) => self.inside(fence, line, limit),
            None => self.outside(line, limit, unit),
        }
    }

    fn inside(&self, fence: &Fence, line: &str, limit: usize) -> Self {
        let (indent, text) = indented(line, 0);
        let closes = marker(text).is_some_and(|(run, rest)| {
            run.starts_with(fence.marker.as_str())
                && rest.trim().is_empty()
                && indent < fence.item.max(fence.indent) + TOO_DEEP
                && indent + run.len() <= limit / 2
        });
        Self {
            fence: (!closes).then(|| fence.clone()),
            item: self.item,
        }
    }

    fn outside(&self, line: &str, limit: usize, unit: Unit) -> Self {
        let read = read(line, self.item);
        let item = match read.bullet {
            Some(margin) => margin,
            None if read.text.trim().is_empty() || read.indent >= self.item => self.item,
            None => 0,
        };
        let fence = marker(read.text)
            .filter(|_| read.indent < item + TOO_DEEP)
            .and_then(|(run, info)| fence(run, info.trim(), (item, read.indent), limit, unit));
        Self { fence, item }
    }
}

/// A fence that can be closed and opened again within `limit` and leave half of each piece to its content; others are
/// treated as text, because repeating them would cost more than it helps.
fn fence(
    run: &str,
    info: &str,
    (item, indent): (usize, usize),
    limit: usize,
    unit: Unit,
) -> Option<Fence> {
    if run.starts_with('`') && info.contains('`') {
        return None; // inline code, not a fence
    }
    let around = 2 * (indent + run.len()) + 2;
    let said_again = around + unit.length(info) <= limit / 2;
    (around <= limit / 2).then(|| Fence {
        item,
        indent,
        marker: run.to_owned(),
        language: if said_again { info } else { "" }.to_owned(),
    })
}

/// How many characters tell whether a line is a fence: more bullets and indent than this nobody follows.
const LOOKED_AT: usize = 80;

/// Whether a renderer that meets `text` as a line of its own could take it for a fence.
pub(super) fn looks_like_one(text: &str) -> bool {
    let text = Unit::Chars.head(text, LOOKED_AT);
    let inline = |run: &str, rest: &str| run.starts_with('`') && rest.contains('`');
    marker(read(text, 0).text).is_some_and(|(run, rest)| !inline(run, rest))
}

/// Bytes of a fence line up to and including its marker; 0 = it is none.
pub(super) fn marker_end(line: &str, open: &Open) -> usize {
    let text = match open.fence {
        Some(_) => indented(line, 0).1,
        None => read(line, open.item).text,
    };
    marker(text).map_or(0, |(run, _)| line.len() - text.len() + run.len())
}

/// The run of three or more backticks or tildes a text begins with, and what follows.
fn marker(text: &str) -> Option<(&str, &str)> {
    let kind = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = text.trim_start_matches(kind);
    let run = text.strip_suffix(rest)?;
    (run.len() >= 3).then_some((run, rest))
}

/// Reads indent and bullets. A bullet counts up to three columns behind the margin of the item it stands in.
fn read(line: &str, item: usize) -> Line<'_> {
    let (mut indent, mut text) = indented(line, 0);
    let mut bullet = None;
    let mut margin = item;
    while indent < margin + TOO_DEEP && indent <= DEEPEST_ITEM {
        let Some(rest) = after_bullet(text) else {
            break;
        };
        let behind = indent + text.len() - rest.len();
        let (column, next) = indented(rest, behind);
        if column == behind && !rest.trim().is_empty() {
            break; // `-x` is a word
        }
        // More than four spaces behind a bullet begin indented code one column behind it.
        let deep = column > behind + TOO_DEEP || next.trim().is_empty();
        margin = if deep { behind + 1 } else { column };
        bullet = Some(margin);
        (indent, text) = (column, next);
        if deep {
            break;
        }
    }
    Line {
        indent,
        bullet,
        text,
    }
}

/// What follows `-`, `*`, `+`, `1.` or `1)`; `None` = the text begins with no bullet.
fn after_bullet(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix(['-', '*', '+']) {
        return Some(rest);
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - rest.len();
    ((1..=9).contains(&digits)).then(|| rest.strip_prefix(['.', ')']))?
}

/// The column behind leading spaces and tabs (a tab stops at every fourth column), and the text there.
fn indented(text: &str, from: usize) -> (usize, &str) {
    let rest = text.trim_start_matches([' ', '\t']);
    let blank = text.strip_suffix(rest).unwrap_or_default();
    let column = blank.chars().fold(from, |column, c| match c {
        '\t' => column / 4 * 4 + 4,
        _ => column + 1,
    });
    (column, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fences(text: &str) -> Vec<bool> {
        let mut open = Open::default();
        text.split_inclusive('\n')
            .map(|line| {
                open = open.after(line, 400, Unit::Chars);
                open.fence.is_some()
            })
            .collect()
    }

    #[test]
    fn a_fence_closes_with_its_own_kind_and_length() {
        let rows: [(&str, &[bool]); 12] = [
            ("```\na\n```\n", &[true, true, false]),
            ("~~~\n```\n~~~\n", &[true, true, false]),
            ("````\n```\n````\n", &[true, true, false]),
            ("```\n`````\n", &[true, false]),
            ("```\n``` rust\n```  \n", &[true, true, false]),
            ("``` a`b\n", &[false]),
            ("    ```\n", &[false]),
            ("- ```rust\n  a\n  ```\n", &[true, true, false]),
            (
                "1. a\n\n   - b\n     ```\n     ```\n",
                &[false, false, false, true, false],
            ),
            ("- a\n\nb\n    ```\n", &[false, false, false, false]),
            ("-```\n", &[false]),
            ("* + ~~~\n    x\n    ~~~\n", &[true, true, false]),
        ];
        for (text, want) in rows {
            assert_eq!(fences(text), want, "{text:?}");
        }
    }
}
