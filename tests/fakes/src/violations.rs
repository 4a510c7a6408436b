//! What broke the platform's rules, collected until a test looks.

use std::sync::Arc;

use parking_lot::Mutex;

/// A shared list of broken rules, one sentence each.
#[derive(Clone, Default)]
pub struct Violations(Arc<Mutex<Vec<String>>>);

impl Violations {
    /// Adds one. The sentence says which request, where in it, and which rule.
    pub(crate) fn add(&self, sentence: impl Into<String>) {
        self.0.lock().push(sentence.into());
    }

    /// Takes them all out: for a test that breaks a rule on purpose.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    /// What was broken so far, still there afterwards.
    pub fn list(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    /// Panics with the list unless it is empty.
    pub fn assert_clean(&self, platform: &str) {
        let broken = self.take();
        assert!(
            broken.is_empty(),
            "{} broken rules of {platform}:\n  {}",
            broken.len(),
            broken.join("\n  ")
        );
    }

    /// [`Self::assert_clean`] for `Drop`: silent while the test already panics.
    pub(crate) fn assert_clean_at_drop(&self, platform: &str) {
        if !std::thread::panicking() {
            self.assert_clean(platform);
        }
    }
}
