//! Whether output is coloured: only on a terminal, and not where `NO_COLOR` asks for none.

use std::io::IsTerminal;

/// Whether stdout may be coloured.
pub(crate) fn on_stdout() -> bool {
    wanted() && std::io::stdout().is_terminal()
}

/// Whether stderr may be coloured.
pub(crate) fn on_stderr() -> bool {
    wanted() && std::io::stderr().is_terminal()
}

/// <https://no-color.org>: set and not empty means no.
fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The colours in use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Green,
    Yellow,
    Red,
}

/// The text in a colour, or plain.
pub(crate) fn paint(text: &str, colour: Colour, on: bool) -> String {
    let code = match colour {
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Red => 31,
    };
    if on {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}
