//! Commands and presses whose tokens still live. In memory only: a token is a secret for 15 minutes, and after a restart
//! the answer goes the way it would go after those.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::event::Token;

/// How long a token is used: Discord's 15 minutes, less what a request may take.
const TOKEN_LIVES: Duration = Duration::from_secs(14 * 60 + 30);

/// Far above what people can press in 15 minutes; beyond it the oldest are forgotten.
const CAPACITY: usize = 10_000;

/// One acknowledged interaction.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) token: Token,
    /// Whether only the asker sees the deferred answer; `None` = a press, which has none.
    pub(crate) deferred_private: Option<bool>,
    /// Whether the deferred answer still waits for its text.
    pub(crate) waiting: bool,
    since: Instant,
}

/// By the interaction's id.
#[derive(Debug, Default)]
pub(crate) struct AskedBook {
    by_id: HashMap<u64, Asked>,
    tidied: Option<Instant>,
}

/// How often dead tokens are thrown away.
const TIDY_EVERY: Duration = Duration::from_secs(30);

impl AskedBook {
    /// Notes an interaction that was acknowledged. `deferred_private` as in [`Asked`].
    pub(crate) fn note(
        &mut self,
        interaction: u64,
        token: Token,
        deferred_private: Option<bool>,
        now: Instant,
    ) {
        self.forget_old(now);
        self.by_id.insert(
            interaction,
            Asked {
                token,
                deferred_private,
                waiting: deferred_private.is_some(),
                since: now,
            },
        );
    }

    /// The interaction, if its token still works.
    pub(crate) fn live(&self, interaction: u64, now: Instant) -> Option<Asked> {
        let asked = self.by_id.get(&interaction)?;
        (now.saturating_duration_since(asked.since) < TOKEN_LIVES).then(|| asked.clone())
    }

    /// The deferred answer has its text, or is taken away.
    pub(crate) fn completed(&mut self, interaction: u64) {
        if let Some(asked) = self.by_id.get_mut(&interaction) {
            asked.waiting = false;
        }
    }

    /// Its token works no more.
    pub(crate) fn dead(&mut self, interaction: u64) {
        self.by_id.remove(&interaction);
    }

    fn forget_old(&mut self, now: Instant) {
        let is_due = |last: Instant| now.saturating_duration_since(last) >= TIDY_EVERY;
        if self.tidied.is_none_or(is_due) {
            self.tidied = Some(now);
            self.by_id
                .retain(|_, asked| now.saturating_duration_since(asked.since) < TOKEN_LIVES);
        }
        if self.by_id.len() >= CAPACITY
            && let Some(oldest) = self.by_id.keys().min().copied()
        {
            self.by_id.remove(&oldest); // ids grow with time
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_while_it_lives() {
        let (mut book, now) = (AskedBook::default(), Instant::now());
        book.note(7, Token("t".to_owned()), Some(true), now);
        assert!(book.live(7, now).is_some_and(|asked| asked.waiting));
        book.completed(7);
        assert!(book.live(7, now).is_some_and(|asked| !asked.waiting));
        assert!(book.live(7, now + TOKEN_LIVES).is_none());
        book.note(8, Token("u".to_owned()), None, now + TOKEN_LIVES);
        assert_eq!(book.by_id.len(), 1);
        book.dead(8);
        assert!(book.live(8, now + TOKEN_LIVES).is_none());
    }

    #[test]
    fn the_book_is_bounded() {
        let (mut book, now) = (AskedBook::default(), Instant::now());
        for id in 1..=CAPACITY as u64 + 5 {
            book.note(id, Token(String::new()), None, now);
        }
        assert_eq!(book.by_id.len(), CAPACITY);
        assert!(book.live(1, now).is_none() && book.live(CAPACITY as u64 + 5, now).is_some());
    }
}
